package status

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// versioned is a Work of a binding of its own, in a version of which its cluster knows
// one.
func versioned(cluster, name string, version, known int64) *workv1alpha1.Work {
	return &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "karmada-es-" + cluster, Name: name, Generation: version,
			Annotations: map[string]string{
				workv1alpha2.ResourceBindingNamespaceAnnotationKey: "shop", workv1alpha2.ResourceBindingNameAnnotationKey: name,
			},
		},
		Status: workv1alpha1.WorkStatus{Conditions: []metav1.Condition{
			{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: known},
		}},
	}
}

func leaving(w *workv1alpha1.Work) *workv1alpha1.Work {
	w.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return w
}

func TestOverdue(t *testing.T) {
	type step struct {
		after  int // seconds
		work   *workv1alpha1.Work
		delete bool
	}
	cases := map[string]struct {
		steps    []step
		notified string // at which second which bindings are notified, checked every second
		has      string // the first, if it is overdue in the end
	}{
		"what is taken up soon is never told":             {[]step{{0, versioned("a", "web", 2, 1), false}, {9, versioned("a", "web", 2, 2), false}}, "", ""},
		"what is not is told once":                        {[]step{{0, versioned("a", "web", 2, 1), false}}, "10 web", "web"},
		"further versions change nothing about it":        {[]step{{0, versioned("a", "web", 2, 1), false}, {9, versioned("a", "web", 3, 1), false}}, "10 web", "web"},
		"taken up in the end, it is well":                 {[]step{{0, versioned("a", "web", 2, 1), false}, {30, versioned("a", "web", 2, 2), false}}, "10 web", ""},
		"what is gone is never told":                      {[]step{{0, versioned("a", "web", 2, 1), false}, {5, versioned("a", "web", 2, 1), true}}, "", ""},
		"a cluster at work on others is not told":         {[]step{{0, versioned("a", "web", 2, 1), false}, {0, versioned("a", "api", 2, 1), false}, {8, versioned("a", "api", 2, 2), false}}, "18 web", "web"},
		"what is being deleted is no work of the cluster": {[]step{{0, versioned("a", "web", 2, 1), false}, {0, versioned("a", "api", 2, 1), false}, {8, leaving(versioned("a", "api", 2, 1)), false}}, "10 web", "web"},
		"another cluster's work is no excuse":             {[]step{{0, versioned("a", "web", 2, 1), false}, {0, versioned("b", "api", 2, 1), false}, {8, versioned("b", "api", 2, 2), false}}, "10 web", "web"},
		"once told it stays so until it is taken up":      {[]step{{0, versioned("a", "web", 2, 1), false}, {11, versioned("a", "api", 2, 1), false}, {12, versioned("a", "api", 2, 2), false}}, "10 web", "web"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
			o := newOverdue(defaults(Options{Clock: clock}))
			var notified []string
			var has string
			for second := range 40 {
				clock.SetTime(time.Unix(int64(second), 0))
				for _, s := range tc.steps {
					switch {
					case s.after != second:
					case s.delete:
						o.gone(client.ObjectKeyFromObject(s.work))
					default:
						o.observe(s.work, false)
					}
				}
				for _, req := range o.sweep() {
					notified = append(notified, fmt.Sprintf("%d %s", second, req.Name))
				}
			}
			if first := tc.steps[0].work; o.has(first) {
				has = first.Name
			}
			got := [2]string{strings.Join(notified, ", "), has}
			if diff := cmp.Diff([2]string{tc.notified, tc.has}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOverdueAfterAStart: what a binding said before the loop started stands until it is
// known to be otherwise, whichever of the two the loop hears of first.
func TestOverdueAfterAStart(t *testing.T) {
	const version = 2
	for name, tc := range map[string]struct {
		earlier  string // by the binding, of the cluster
		heard    bool   // of the Work, before the binding is looked at
		takenUp  int64  // the version that the cluster has by then
		later    int64  // one that it is sent later
		applied  bool
		reported string
	}{
		"it was overdue": {earlier: rollup.Overdue, heard: true, takenUp: 1, reported: rollup.Overdue},
		"it was overdue, and the binding is read first": {earlier: rollup.Overdue, takenUp: 1, reported: rollup.Overdue},
		"it was overdue, and was taken up meanwhile":    {earlier: rollup.Overdue, heard: true, takenUp: version, applied: true},
		"it was behind, and not for long":               {heard: true, takenUp: 1, applied: true},
		"it was taken up, and is sent another version":  {earlier: rollup.Overdue, heard: true, takenUp: version, later: version + 1, applied: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", UID: "u"},
				Spec: workv1alpha2.ResourceBindingSpec{
					Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
					Clusters: []workv1alpha2.TargetCluster{{Name: "a"}},
				},
				Status: workv1alpha2.ResourceBindingStatus{AggregatedStatus: []workv1alpha2.AggregatedStatusItem{{ClusterName: "a", AppliedMessage: tc.earlier}}},
			}
			work := versioned("a", workv1alpha2.WorkName("Deployment", "web", "shop"), version, tc.takenUp)
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).Build()
			r := New(hub, templates{}, nil, Options{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))})
			works := r.reportedChanges()
			if tc.heard {
				works.Create(event.CreateEvent{Object: work})
			}
			if tc.later > 0 {
				before := work.DeepCopy()
				work.Generation = tc.later
				works.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: work})
			}
			if err := hub.Create(t.Context(), work); err != nil {
				t.Fatal(err)
			}
			s := &state{key: client.ObjectKeyFromObject(b), binding: b}
			if _, err := r.gather(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			want := []workv1alpha2.AggregatedStatusItem{{ClusterName: "a", Applied: tc.applied, AppliedMessage: tc.reported, Health: workv1alpha2.ResourceUnknown}}
			if diff := cmp.Diff(want, s.items); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOverdueWhatIsAlwaysPassedOver: a cluster that takes up others all the time is no
// excuse for ever.
func TestOverdueWhatIsAlwaysPassedOver(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	o := newOverdue(defaults(Options{Clock: clock}))
	o.observe(versioned("a", "web", 2, 1), false)
	for second := range 100 {
		clock.SetTime(time.Unix(int64(second), 0))
		o.observe(versioned("a", "api", int64(second)+2, int64(second)+1), false)
		o.observe(versioned("a", "api", int64(second)+2, int64(second)+2), false)
		if notified := o.sweep(); len(notified) > 0 {
			if second != 60 || notified[0].Name != "web" {
				t.Fatalf("after %d s: %v", second, notified)
			}
			return
		}
	}
	t.Fatal("never told")
}
