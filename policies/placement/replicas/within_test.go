package replicas_test

import (
	"fmt"
	"strings"
	"testing"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
)

// TestWithin: what takes no more than before is what goes on, and what was freed in the new clusters.
func TestWithin(t *testing.T) {
	read := func(text string) (out []workv1alpha2.TargetCluster) {
		for _, part := range strings.Fields(text) {
			target := workv1alpha2.TargetCluster{Name: part[:1]}
			if _, err := fmt.Sscanf(part[1:], ":%d", &target.Replicas); err != nil {
				t.Fatal(err)
			}
			out = append(out, target)
		}
		return out
	}
	text := func(targets []workv1alpha2.TargetCluster) string {
		var out []string
		for _, target := range targets {
			out = append(out, fmt.Sprintf("%s:%d", target.Name, target.Replicas))
		}
		return strings.Join(out, " ")
	}
	each := &policyv1alpha1.Placement{}
	parts := &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}}
	spread := func(p *policyv1alpha1.Placement, c policyv1alpha1.SpreadConstraint) *policyv1alpha1.Placement {
		out := p.DeepCopy()
		out.SpreadConstraints = []policyv1alpha1.SpreadConstraint{c}
		return out
	}
	byCluster := func(n int) policyv1alpha1.SpreadConstraint { return policyv1alpha1.SpreadConstraint{MinGroups: n} }
	for name, tc := range map[string]struct {
		placement     *policyv1alpha1.Placement
		was, is, want string
	}{
		"no placement":                            {nil, "a:2", "b:2 c:2", "b:2"},
		"one for one":                             {each, "a:2 b:2", "b:2 c:2 d:2", "b:2 c:2"},
		"more in each":                            {each, "a:2 b:2", "b:3 c:3", "b:2 c:2"},
		"less in each, in more clusters":          {each, "a:4", "b:3 c:3", "b:3"},
		"what takes nothing":                      {each, "a:0", "b:0 c:0", "b:0"},
		"parts":                                   {parts, "a:4", "b:3 c:3", "b:3 c:1"},
		"parts, of which the first takes all":     {parts, "a:4 b:1", "b:1 c:9 d:9", "b:1 c:4"},
		"parts, and nothing is left":              {parts, "a:2 b:2", "a:3 b:3 c:3", "a:2 b:2"},
		"as many clusters as are asked for":       {spread(parts, byCluster(2)), "a:4", "b:3 c:3", "b:3 c:1"},
		"not as many":                             {spread(parts, byCluster(3)), "a:4 e:0", "b:4 c:3 d:3", ""},
		"what spreads over regions is left alone": {spread(each, policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByFieldRegion}), "a:2", "b:2 c:2", ""},
		"or by a label":                           {spread(each, policyv1alpha1.SpreadConstraint{SpreadByLabel: "rack"}), "a:2", "b:2 c:2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := text(replicas.Within(tc.placement, read(tc.was), read(tc.is))); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
