package dispatchsuspension_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/binding/dispatchsuspension"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// TestFrom: of the Works in a cluster that is being left, those that it did not get are suspended, and no others.
func TestFrom(t *testing.T) {
	condition := func(status metav1.ConditionStatus, generation int64) []metav1.Condition {
		return []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: status, ObservedGeneration: generation}}
	}
	left := []workv1alpha2.GracefulEvictionTask{{FromCluster: "east"}}
	west := []workv1alpha2.TargetCluster{{Name: "west"}}
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		clusters   []workv1alpha2.TargetCluster
		tasks      []workv1alpha2.GracefulEvictionTask
		there      bool
		suspended  bool
	}{
		"never reported":                        {clusters: west, tasks: left, suspended: true},
		"not applied":                           {conditions: condition(metav1.ConditionFalse, 2), clusters: west, tasks: left, suspended: true},
		"changed since it was applied":          {conditions: condition(metav1.ConditionTrue, 1), clusters: west, tasks: left, suspended: true},
		"applied as it is":                      {conditions: condition(metav1.ConditionTrue, 2), clusters: west, tasks: left},
		"applied by an agent of another time":   {conditions: condition(metav1.ConditionTrue, 0), clusters: west, tasks: left},
		"the cluster answers":                   {clusters: west, tasks: left, there: true},
		"another cluster is left":               {clusters: west, tasks: []workv1alpha2.GracefulEvictionTask{{FromCluster: "west"}}},
		"no cluster is left":                    {clusters: west},
		"it is placed there":                    {clusters: append(west, workv1alpha2.TargetCluster{Name: "east"}), tasks: left},
		"there is no other place for it so far": {tasks: left},
	} {
		t.Run(name, func(t *testing.T) {
			work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "once", UID: "w", Generation: 2}}
			work.Spec.SuspendDispatching = ptr.To(false)
			work.Status.Conditions = tc.conditions
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(work).Build()
			h := dispatchsuspension.Withholder{Hub: hub, Written: writecache.New[*workv1alpha1.Work](clocktesting.NewFakePassiveClock(time.Unix(0, 0)))}
			for range 2 {
				if err := h.From(t.Context(), &workv1alpha2.ResourceBindingSpec{Clusters: tc.clusters, GracefulEvictionTasks: tc.tasks}, []*workv1alpha1.Work{work}, func(string) bool { return !tc.there }); err != nil {
					t.Fatal(err)
				}
				if err := hub.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
					t.Fatal(err)
				}
				want := workv1alpha1.WorkSpec{SuspendDispatching: ptr.To(tc.suspended)}
				if diff := cmp.Diff(want, work.Spec); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}
