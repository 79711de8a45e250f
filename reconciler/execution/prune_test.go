package execution

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/execution/manifest"
)

const otherText = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"other"}}`

// named returns a Work whose status lists "web", while its manifest is for another object.
func named(change func(*workv1alpha1.Work)) *workv1alpha1.Work {
	work := testWork(otherText)
	work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{
		Identifier: workv1alpha1.ResourceIdentifier{Group: "apps", Version: "v1beta1", Kind: "Deployment", Namespace: "shop", Name: "web"},
	}}
	change(work)
	return work
}

// TestTidy: what becomes of an object that no manifest names any more.
func TestTidy(t *testing.T) {
	nothing := func(*workv1alpha1.Work) {}
	cases := map[string]struct {
		work   *workv1alpha1.Work
		edge   *edge
		failed error
		asked  []string
		left   int
		stuck  bool
	}{
		"it is removed":           {work: named(nothing), edge: &edge{presence: members.Present, observed: ours(asIs)}, asked: []string{"delete web u"}},
		"it is gone already":      {work: named(nothing), edge: &edge{presence: members.Absent}, asked: []string{"get web"}},
		"it is another Work's":    {work: named(nothing), edge: &edge{presence: members.Present, observed: ours(func(o *members.Observed) { o.Work.Name = "other" })}},
		"its label was taken off": {work: named(nothing), edge: &edge{presence: members.Present, observed: ours(func(o *members.Observed) { o.Managed = false })}},
		"not before the Work has all that it asks for": {
			work: named(nothing), edge: &edge{presence: members.Present, observed: ours(asIs)}, failed: errors.New("denied"), left: 1,
		},
		"not while the Work is suspended": {
			work: named(func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = ptr.To(true) }), edge: &edge{presence: members.Present, observed: ours(asIs)}, left: 1,
		},
		"it stays, without our metadata, where the Work preserves": {
			work: named(func(w *workv1alpha1.Work) { w.Spec.PreserveResourcesOnDeletion = ptr.To(true) }),
			edge: &edge{presence: members.Present, observed: ours(asIs)}, asked: []string{"unmark web"},
		},
		"the member refuses: it is remembered and reported": {
			work: named(nothing), edge: &edge{presence: members.Present, observed: ours(asIs), refuse: errors.New("denied")}, asked: []string{"delete web u"}, left: 1, stuck: true,
		},
		"another version of the kind is the same object": {
			work: named(func(w *workv1alpha1.Work) {
				w.Spec.Workload.Manifests[0].RawExtension = runtime.RawExtension{Raw: []byte(manifestText)}
			}),
			edge: &edge{presence: members.Present, observed: ours(asIs)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := testWorker(tc.edge, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			s := &state{key: workKey, work: tc.work, cluster: &clusterv1alpha1.Cluster{}, member: tc.edge}
			if _, err := w.reader.connect(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			s.objects[0].failed = tc.failed
			if _, err := w.pruner.prune(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.asked, tc.edge.asked); diff != "" {
				t.Errorf("asked of the member (-want +got):\n%s", diff)
			}
			if len(s.left) != tc.left || (s.stuck != nil) != tc.stuck {
				t.Errorf("left %v, stuck %v", s.left, s.stuck)
			}
			if _, err := w.describer.computeStatus(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			kept := 0
			for _, m := range s.status.ManifestStatuses {
				if m.Identifier.Name == "web" && m.Identifier.Version != "v1" {
					kept++
				}
			}
			if kept != tc.left {
				t.Errorf("the status remembers %d, want %d: %v", kept, tc.left, s.status.ManifestStatuses)
			}
			if tc.stuck && meta.IsStatusConditionTrue(s.status.Conditions, workv1alpha1.WorkApplied) {
				t.Error("it counts as applied")
			}
		})
	}
}

// TestLeftoverOfAnotherGeneration: what was sent, and not written into the status before
// its manifest was dropped, is remembered all the same.
func TestLeftoverOfAnotherGeneration(t *testing.T) {
	c := manifest.NewCache()
	work := testWork(manifestText)
	c.Of(work)
	work = work.DeepCopy()
	work.Generation++
	work.Spec.Workload.Manifests = testWork(otherText).Spec.Workload.Manifests
	left := c.Leftovers(work, c.Of(work))
	if len(left) != 1 || left[0].Key.Name != "web" {
		t.Fatalf("leftovers: %v", left)
	}
	again := work.DeepCopy()
	again.Generation++
	again.Spec.Workload.Manifests = testWork(manifestText).Spec.Workload.Manifests
	if left := c.Leftovers(again, c.Of(again)); len(left) != 1 || left[0].Key.Name != "other" {
		t.Errorf("leftovers once it is asked for again: %v", left)
	}
	work.UID = "anew"
	if left := c.Leftovers(work, c.Of(work)); len(left) != 0 {
		t.Errorf("leftovers of another Work of that name: %v", left)
	}
}
