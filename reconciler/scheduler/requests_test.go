package scheduler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/decider"
)

// TestRequestsAreDated: a placed binding is reconciled again, as the cases say,
// a minute after it was placed; want is the time in its record, in seconds.
func TestRequestsAreDated(t *testing.T) {
	relabelled := func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"tier": "test"} }
	edited := func(b *workv1alpha2.ResourceBinding) { b.Generation++ }
	for name, tc := range map[string]struct {
		off     bool
		cluster func(*clusterv1alpha1.Cluster)
		binding func(*workv1alpha2.ResourceBinding)
		want    int64
	}{
		"nothing has asked for it":                {want: 0},
		"a cluster's labels changed":              {cluster: relabelled, want: 60},
		"the binding changed":                     {binding: edited, want: 60},
		"a cluster's labels, where none is dated": {off: true, cluster: relabelled, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			b, m1 := bound(), cluster("m1")
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(b, m1, cluster("m2")).WithIndex(&workv1alpha2.ResourceBinding{}, "x", func(client.Object) []string { return nil }).Build()
			clock := clocktesting.NewFakeClock(time.Unix(0, 0))
			var events recorder
			r := New(hub, decider.New(hub, decider.Options{Clock: clock}), &events, Options{Clock: clock, DateEachTrial: !tc.off})
			req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)}
			read := func() *workv1alpha2.ResourceBinding {
				t.Helper()
				if _, err := r.Reconcile(t.Context(), req); err != nil {
					t.Fatal(err)
				}
				is := &workv1alpha2.ResourceBinding{}
				if err := hub.Get(t.Context(), req.NamespacedName, is); err != nil {
					t.Fatal(err)
				}
				return is
			}
			placed := read()
			clock.Step(time.Minute)
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			if tc.cluster != nil {
				after := m1.DeepCopy()
				tc.cluster(after)
				r.wakes.clusterEvents().Update(t.Context(), event.TypedUpdateEvent[*clusterv1alpha1.Cluster]{ObjectOld: m1, ObjectNew: after}, q)
			}
			if tc.binding != nil {
				after := placed.DeepCopy()
				tc.binding(after)
				after.ResourceVersion = "another's"
				r.wakes.bindingEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: placed, ObjectNew: after}, q)
			}
			is := read()
			record, _ := placement.RecordOf(is)
			if diff := cmp.Diff(tc.want, record.At.Unix()); diff != "" {
				t.Errorf("placed at (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(placed.Spec, is.Spec); diff != "" {
				t.Errorf("the spec changed (-before +after):\n%s", diff)
			}
			clock.Step(time.Minute)
			if again := read(); again.ResourceVersion != is.ResourceVersion {
				t.Error("what nothing asked for was written")
			}
		})
	}
}
