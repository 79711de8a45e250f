package rollup_test

import (
	"testing"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TestWhatWasMovedOffALostCluster: a commit that is well again for a move says so, for as long as what it left behind is not known.
func TestWhatWasMovedOffALostCluster(t *testing.T) {
	silence := rollup.Silence{Cause: "unreachable", Since: at.Time}
	move := &eviction.Move{From: []string{"west"}, To: []string{"east"}, Why: "untolerated taint {a:NoExecute}", At: at}
	for name, tc := range map[string]struct {
		move   *eviction.Move
		silent rollup.Silences
		in     []string
		want   string
	}{
		"it was moved":                       {move, rollup.Silences{"west": silence}, []string{"east"}, "success 1/1 clusters ready; Deployment shop/web moved off west (unreachable since 2026-01-01 00:00 UTC) to east"},
		"it only left":                       {&eviction.Move{From: []string{"west"}, At: at}, rollup.Silences{"west": silence}, []string{"east"}, "success 1/1 clusters ready; Deployment shop/web moved off west (unreachable since 2026-01-01 00:00 UTC)"},
		"the cluster is back":                {move, nil, []string{"east"}, "success 1/1 clusters ready"},
		"another cluster is lost":            {move, rollup.Silences{"north": silence}, []string{"east"}, "success 1/1 clusters ready"},
		"it never moved":                     {nil, rollup.Silences{"west": silence}, []string{"east"}, "success 1/1 clusters ready"},
		"it is placed there again, and lost": {move, rollup.Silences{"west": silence}, []string{"east", "west"}, "pending 1/2 clusters ready: west unreachable since 2026-01-01 00:00 UTC"},
	} {
		t.Run(name, func(t *testing.T) {
			record := succeeded
			record.LastMove = tc.move
			var works []*workv1alpha1.Work
			for _, cluster := range tc.in {
				works = append(works, work(cluster, "True", "", workv1alpha2.ResourceHealthy, `{"replicas":5,"updatedReplicas":5,"readyReplicas":5,"resourceTemplateGeneration":3}`))
			}
			got := rollup.Revision([]rollup.Part{rollup.PartOf(template("Deployment"), binding(record, tc.in...), works, tc.silent)})
			if text := got.State + " " + got.Description; text != tc.want {
				t.Errorf("%q, want %q", text, tc.want)
			}
		})
	}
	var parts []rollup.Part
	for _, name := range []string{"web", "api"} {
		parts = append(parts, rollup.Part{Object: "Deployment shop/" + name, Moved: "off west (gone) to east"})
	}
	if got, want := rollup.Moved(parts), "Deployment shop/api (and 1 more) moved off west (gone) to east"; got != want {
		t.Errorf("of several %q, want %q", got, want)
	}
}
