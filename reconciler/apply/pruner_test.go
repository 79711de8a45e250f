package apply

import (
	"context"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/clusterprune"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// partly assesses everything as applied in east, and not in west.
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

// TestReadyIsNotReplaced: a Kustomization may be ready without being applied everywhere, as silent clusters may not
// count.
func TestReadyIsNotReplaced(t *testing.T) {
	ready := func(s *state) { s.current, s.ks.Status.LastAppliedRevision = true, newRevision }
	waits := func(s *state) { s.ks.Spec.Wait = true }
	leaves := func(s *state) { s.stale.Deleted = []inventory.Entry{{ID: configID("z"), Version: "v1"}} }
	nothing := func(s *state) { s.desired = nil } // so that no object has to be read
	for name, tc := range map[string]struct {
		state *state
		want  []health.Request
		in    []string
	}{
		"nothing left it":          {state: run(ready, nothing), in: []string{"east", "west"}},
		"health is not waited for": {state: run(leaves, nothing), want: []health.Request{{Applied: true, Observed: applier.Observed{}}}, in: []string{"east"}},
		// The phase assess has found out the health.
		"health is waited for, and known": {state: run(waits, leaves, nothing), in: []string{"east", "west"}},
		"it is ready":                     {state: run(ready, waits, leaves, nothing), want: []health.Request{{Observed: applier.Observed{}}}, in: []string{"east"}},
	} {
		t.Run(name, func(t *testing.T) {
			assessor := &partly{}
			d := pruner{assessor: assessor, applier: applier.New(nil, nil, applier.Options{})}
			if _, err := d.assessReplacement(t.Context(), tc.state); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, assessor.asked, cmpopts.IgnoreFields(health.Request{}, "As")); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.in, tc.state.stale.replaced.In([]workv1alpha2.TargetCluster{{Name: "east"}, {Name: "west"}})); diff != "" {
				t.Errorf("replaced in (-want +got):\n%s", diff)
			}
		})
	}
}

// besides assesses everything as healthy, but for a silent cluster and one that does not exist.
type besides struct{ Assessor }

func (besides) Assess(context.Context, health.Request) (health.Assessment, error) {
	return health.Assessment{Uncounted: []string{"west"}, Absent: "Deployment shop/web: clusterNames names esat, which does not exist (did you mean east?)"}, nil
}

// TestReadyNamesClustersBesides: the conditions name the clusters that do not count.
func TestReadyNamesClustersBesides(t *testing.T) {
	s := run(func(s *state) { s.ks.Spec.Wait, s.desired = true, nil })
	r := &Reconciler{deps: Deps{Assessor: besides{}}, applier: applier.New(nil, nil, applier.Options{})}
	if _, err := r.assessHealth(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	const aside = "; not counting what was not heard of: west (kustomize.flotilla.io/max-unreachable); Deployment shop/web: clusterNames names esat, which does not exist (did you mean east?)"
	want := map[string]string{"Ready": "True: Applied revision: " + newRevision + aside, "Healthy": "True: All objects are healthy" + aside}
	got := map[string]string{}
	for _, c := range statusOf(s, nil, noon).Conditions {
		got[c.Type] = string(c.Status) + ": " + c.Message
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// TestWhatIsNotMeantToLeaveGoesFromNowhere: an object that the status does not record as leaving is pruned from no
// cluster, as it would be restored there. A run that records it is followed by another one soon. More objects than the
// status can record are never pruned from single clusters.
func TestWhatIsNotMeantToLeaveGoesFromNowhere(t *testing.T) {
	binding := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: workv1alpha2.BindingName("ConfigMap", "z")},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "team", Name: "z"}, Clusters: []workv1alpha2.TargetCluster{{Name: "east"}},
		},
	}
	for name, tc := range map[string]struct {
		current, unreplaced bool
		ago                 time.Duration // since the revision was applied first
		after               time.Duration
	}{
		"a run that has the status tell of it": {after: minimumPause},
		"one after that":                       {current: true, after: silentPoll},
		"one after that, while a cluster has yet to get what replaces it": {current: true, unreplaced: true, ago: time.Second, after: healthPoll},
		"one some seconds later": {current: true, unreplaced: true, ago: 5 * time.Second, after: 5 * time.Second},
		"one long after that":    {current: true, unreplaced: true, ago: time.Hour, after: silentPoll},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(binding.DeepCopy()).Build()
			s := run(func(s *state) {
				s.current, s.stale.unreplaced = tc.current, tc.unreplaced
				s.ks.Status.History = meta.History{{FirstReconciled: metav1.NewTime(s.now.Add(-tc.ago))}}
				s.stale.retained = []inventory.Entry{{ID: configID("z"), Version: "v1"}}
			})
			next, err := pruner{clusters: clusterprune.New(hub)}.pruneClusters(t.Context(), s)
			if err != nil || next.After != tc.after {
				t.Errorf("thin = %+v, %v, want it to look again after %s", next, err, tc.after)
			}
			got := &workv1alpha2.ResourceBinding{}
			if err := hub.Get(t.Context(), client.ObjectKeyFromObject(binding), got); err != nil || len(plan.PrunedFrom(got)) > 0 {
				t.Errorf("it is pruned from %v, %v", plan.PrunedFrom(got), err)
			}
		})
	}
}
