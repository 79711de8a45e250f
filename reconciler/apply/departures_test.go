package apply

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// partly assesses everything as applied in east, and not elsewhere.
type partly struct {
	Assessor
	asked []health.Request
}

func (p *partly) Assess(_ context.Context, req health.Request) (health.Assessment, error) {
	p.asked = append(p.asked, req)
	var found health.Assessment
	found.Replaced.AddPart(rollup.Part{Clusters: []rollup.ClusterPart{{Name: "east"}, {Name: "west", State: rollup.Unknown}}})
	return found, nil
}

// TestReadyIsNotReplaced: that a Kustomization is ready does not say that all of it stands everywhere, as clusters of
// which nothing is heard need not count.
func TestReadyIsNotReplaced(t *testing.T) {
	ready := func(s *state) { s.settled, s.ks.Status.LastAppliedRevision = true, newRevision }
	waits := func(s *state) { s.ks.Spec.Wait = true }
	leaves := func(s *state) { s.leaving.Deleted = []inventory.Entry{{ID: configID("z"), Version: "v1"}} }
	nothing := func(s *state) { s.desired = nil } // to be read
	for name, tc := range map[string]struct {
		state *state
		want  []health.Request
		in    []string
	}{
		"nothing left it":                 {state: run(ready, nothing), in: []string{"east", "west"}},
		"health is not waited for":        {state: run(leaves, nothing), want: []health.Request{{Applied: true, Observed: applier.Observed{}}}, in: []string{"east"}},
		"health is waited for, and known": {state: run(waits, leaves, nothing), in: []string{"east", "west"}}, // by who looked
		"it is ready":                     {state: run(ready, waits, leaves, nothing), want: []health.Request{{Observed: applier.Observed{}}}, in: []string{"east"}},
	} {
		t.Run(name, func(t *testing.T) {
			assessor := &partly{}
			d := departures{assessor: assessor, applier: applier.New(nil, nil, applier.Options{})}
			if _, err := d.replace(t.Context(), tc.state); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, assessor.asked, cmpopts.IgnoreFields(health.Request{}, "As")); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.in, tc.state.leaving.replaced.In([]workv1alpha2.TargetCluster{{Name: "east"}, {Name: "west"}})); diff != "" {
				t.Errorf("replaced in (-want +got):\n%s", diff)
			}
		})
	}
}
