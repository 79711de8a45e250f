package quota_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/quota"
)

// TestAggregated: what clusters say of their shares, sorted, and nothing of others.
func TestAggregated(t *testing.T) {
	limit := &policyv1alpha1.FederatedResourceQuota{}
	limit.Spec = *decode[policyv1alpha1.FederatedResourceQuotaSpec](t, `
overall: {cpu: 10}
staticAssignments:
- {clusterName: west, hard: {cpu: 4000m}}
- {clusterName: east, hard: {cpu: 3}}
`)
	for name, tc := range map[string]struct {
		reported map[string]string // status of the ResourceQuota, by cluster; empty: none yet
		want     []string
		err      string
	}{
		"nobody has one yet":                {nil, nil, ""},
		"one has, one says nothing yet":     {map[string]string{"west": `{"hard":{"cpu":"4"},"used":{"cpu":"1500m"}}`, "east": ""}, []string{"west 4 1500m"}, ""},
		"both, sorted":                      {map[string]string{"west": `{"hard":{"cpu":"4"},"used":{"cpu":"0"}}`, "east": `{"hard":{"cpu":"3"},"used":{"cpu":"2"}}`}, []string{"east 3 2", "west 4 0"}, ""},
		"the share before is still limited": {map[string]string{"east": `{"hard":{"cpu":"7"},"used":{"cpu":"2"}}`}, []string{"east 7 2"}, ""},
		"nothing is limited yet":            {map[string]string{"east": `{}`}, nil, ""},
		"one that has no share any more":    {map[string]string{"north": `{"hard":{"cpu":"3"}}`}, nil, ""},
		"one that says what cannot be read": {map[string]string{"east": `[]`, "west": `{"hard":{"cpu":"4"},"used":{"cpu":"1"}}`}, []string{"west 4 1"}, "cluster east: "},
	} {
		t.Run(name, func(t *testing.T) {
			works := map[string]*workv1alpha1.Work{}
			for cluster, text := range tc.reported {
				works[cluster] = &workv1alpha1.Work{}
				if text != "" {
					works[cluster].Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: []byte(text)}}}
				}
			}
			items, err := quota.Aggregated(limit, works)
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			var got []string
			for _, item := range items {
				got = append(got, fmt.Sprintf("%s %s %s", item.ClusterName, item.Hard.Cpu(), item.Used.Cpu()))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("aggregated (-want +got):\n%s", diff)
			}
		})
	}
}
