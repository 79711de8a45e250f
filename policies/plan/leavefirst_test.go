package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// TestMayLeaveFirst: what must never run twice goes once its cluster is there and so is one that it goes to.
func TestMayLeaveFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		to, from, away string
		want           []string
	}{
		"all are there":                        {to: "b", from: "a", want: []string{"a"}},
		"the one that is left is away":         {to: "b", from: "a", away: "a", want: []string{}},
		"the one that it goes to is away":      {to: "b", from: "a", away: "b"},
		"one of two that it goes to is away":   {to: "b c", from: "a", away: "b", want: []string{"a"}},
		"one of two that are left is away":     {to: "c", from: "a b", away: "b", want: []string{"a"}},
		"it has no other place":                {from: "a"},
		"what is placed there still is no one": {to: "a", from: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &workv1alpha2.ResourceBindingSpec{}
			for _, cluster := range strings.Fields(tc.to) {
				spec.Clusters = append(spec.Clusters, workv1alpha2.TargetCluster{Name: cluster})
			}
			for _, cluster := range strings.Fields(tc.from) {
				spec.GracefulEvictionTasks = append(spec.GracefulEvictionTasks, workv1alpha2.GracefulEvictionTask{FromCluster: cluster, PurgeMode: policyv1alpha1.PurgeModeDirectly})
			}
			got := plan.MayLeaveFirst(spec, func(cluster string) bool { return strings.Contains(tc.away, cluster) })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
