package staleremoval_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/staleremoval"
)

// TestJudge: the copy is that in west, and the template is placed in east and north.
func TestJudge(t *testing.T) {
	const soon, later = time.Second, 3 * time.Second
	type copies = map[string]staleremoval.Copy
	goes, both := staleremoval.Verdict{Goes: true}, []string{"east", "north"}
	for name, tc := range map[string]struct {
		copies copies
		change func(b *workv1alpha2.ResourceBinding)
		want   staleremoval.Verdict
	}{
		"no other copy is healthy":                             {want: staleremoval.Verdict{In: both}},
		"one is, and its cluster has answered":                 {copies: copies{"north": {Healthy: true}}, want: goes},
		"one is, and its cluster has not answered":             {copies: copies{"north": {Healthy: true, After: soon}}, want: staleremoval.Verdict{Awaits: "north", After: soon, In: both}},
		"both are, and neither has answered":                   {copies: copies{"east": {Healthy: true, After: later}, "north": {Healthy: true, After: soon}}, want: staleremoval.Verdict{Awaits: "north", After: soon, In: both}},
		"both are, and the second has answered":                {copies: copies{"east": {Healthy: true, After: later}, "north": {Healthy: true}}, want: goes},
		"one has answered that it is unhealthy":                {copies: copies{"east": {}}, want: staleremoval.Verdict{In: both}},
		"a cluster that it is not placed in has a healthy one": {copies: copies{"south": {Healthy: true}}, want: staleremoval.Verdict{In: both}},
		"it is placed nowhere":                                 {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = nil }, want: goes},
		"it is placed here again, too": {
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: "west"})
			},
			want: staleremoval.Verdict{In: []string{"east", "north", "west"}},
		},
		"it is pruned here":      {change: func(b *workv1alpha2.ResourceBinding) { plan.SetPrunedFrom(b, []string{"west"}) }, want: goes},
		"it is pruned elsewhere": {change: func(b *workv1alpha2.ResourceBinding) { plan.SetPrunedFrom(b, []string{"east"}) }, want: staleremoval.Verdict{In: both[1:]}},
		"it leaves before it starts elsewhere": {change: func(b *workv1alpha2.ResourceBinding) {
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "west", PurgeMode: policyv1alpha1.PurgeModeDirectly}}
		}, want: goes},
		"it leaves once it has started elsewhere": {change: func(b *workv1alpha2.ResourceBinding) {
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "west", PurgeMode: policyv1alpha1.PurgeModeGracefully}}
		}, want: staleremoval.Verdict{In: both}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{}
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "north"}, {Name: "east"}}
			if tc.change != nil {
				tc.change(b)
			}
			if diff := cmp.Diff(tc.want, staleremoval.Judge(b, "west", func(target string) staleremoval.Copy { return tc.copies[target] })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
