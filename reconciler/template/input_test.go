package template

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/unplaced"
	"github.com/flotilla-io/flotilla/reconciler/decider"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// TestWhatADecisionSees: when an edit causes a new placement, the decision may be that the template cannot leave a
// cluster. The event for that has to come from this pass, as no later one repeats it.
func TestWhatADecisionSees(t *testing.T) {
	recorded := func(reason string, stays *unplaced.Stays) placement.Decision {
		d := placement.Decision{
			Clusters: []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 3}}, AppliedPlacement: "{}",
			Record: placement.Record{Reason: reason, Message: "Said.", At: metav1.NewTime(noon), Stays: stays},
		}
		if stays != nil {
			d.Record.EvictionReported = &eviction.Report{Of: "m1", At: metav1.NewTime(noon)}
		}
		return d
	}
	again := recorded("Success", nil)
	again.Record.EvictionReported = &eviction.Report{Of: "m1", At: metav1.NewTime(noon)}
	stays := &unplaced.Stays{Message: "It stays in m1.", Clusters: []string{"m1"}}
	for name, tc := range map[string]struct {
		was, is placement.Decision
		want    []decider.Event
	}{
		"it is placed":                                {was: recorded("Success", nil), is: recorded("Success", nil)},
		"it is not":                                   {was: recorded("Success", nil), is: recorded("NoClusterFit", nil), want: []decider.Event{{Type: corev1.EventTypeWarning, Reason: "ScheduleBindingFailed", Message: "Said."}}},
		"it cannot leave a cluster":                   {was: recorded("Success", nil), is: recorded("Success", stays), want: []decider.Event{{Type: corev1.EventTypeWarning, Reason: "EvictWorkloadFromClusterFailed", Message: "It stays in m1."}}},
		"it could not before either":                  {was: recorded("Success", stays), is: recorded("Success", stays)},
		"it could meanwhile, and was told of already": {was: again, is: recorded("Success", stays)},
	} {
		t.Run(name, func(t *testing.T) {
			stored := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", UID: "u", Generation: 1}}
			tc.was.Put(stored)
			clock := clocktesting.NewFakePassiveClock(noon)
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(stored).Build()
			p := writer{hub: hub, written: writecache.New[workv1alpha2.Binding](clock), withdraw: func(workv1alpha2.Binding) {}, clock: clock}
			desired := stored.DeepCopy()
			tc.is.Put(desired)
			desired.Labels = map[string]string{"edited": "yes"} // there is something to write
			s := &state{key: key(), binding: stored, desired: desired, decision: &tc.is}
			if _, err := p.run(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, s.pending); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}
