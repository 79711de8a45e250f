package massfailure_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/reconciler/massfailure"
)

type recorder struct{ reported []string }

func (r *recorder) Event(obj runtime.Object, kind, reason, _ string) {
	r.reported = append(r.reported, kind+" "+reason+" "+obj.(client.Object).GetName())
}

// TestManyAreLost: it stands on those that were lost at once, and goes when they are back or somebody confirms the loss.
func TestManyAreLost(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	var objects []client.Object
	for _, name := range []string{"east", "north", "west"} {
		objects = append(objects, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	writes := 0
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).WithStatusSubresource(&clusterv1alpha1.Cluster{}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			writes++
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		}}).Build()
	events := &recorder{}
	clock := clocktesting.NewFakePassiveClock(noon)
	loop := massfailure.New(hub, events, massfailure.Options{Clock: clock})
	edit := func(name string, change func(*clusterv1alpha1.Cluster)) {
		t.Helper()
		c := &clusterv1alpha1.Cluster{}
		if err := hub.Get(t.Context(), client.ObjectKey{Name: name}, c); err != nil {
			t.Fatal(err)
		}
		change(c)
		status := c.Status
		if err := hub.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		c.Status = status
		if err := hub.Status().Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	ready := func(status metav1.ConditionStatus, reason string) func(*clusterv1alpha1.Cluster) {
		return func(c *clusterv1alpha1.Cluster) {
			meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: "Ready", Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(noon)})
		}
	}
	is := func(what, want string, wrote int) {
		t.Helper()
		writes = 0
		for range 2 { // the second time there is nothing to write
			if _, err := loop.Reconcile(t.Context(), reconcile.Request{}); err != nil {
				t.Fatal(err)
			}
		}
		var list clusterv1alpha1.ClusterList
		if err := hub.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range list.Items {
			if c := meta.FindStatusCondition(list.Items[i].Status.Conditions, clusterv1alpha1.ClusterConditionMassFailureSuspected); c != nil {
				got = append(got, list.Items[i].Name)
			}
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" || writes != wrote {
			t.Errorf("%s: %d writes, want %d (-want +got):\n%s", what, writes, wrote, diff)
		}
	}
	is("all are new", "", 0)
	edit("east", ready(metav1.ConditionFalse, clusterv1alpha1.ClusterNotReachableReason))
	is("one is lost", "", 0)
	edit("west", ready(metav1.ConditionFalse, clusterv1alpha1.ClusterNotReachableReason))
	is("another one is", "east west", 2)
	if diff := cmp.Diff([]string{"Warning ManyClustersLost east", "Warning ManyClustersLost west"}, events.reported); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	edit("east", func(c *clusterv1alpha1.Cluster) {
		c.Annotations = map[string]string{clusterv1alpha1.ConfirmLostAnnotation: noon.Add(time.Minute).Format(time.RFC3339)}
	})
	is("the loss of one is confirmed", "west", 2)
	edit("east", func(c *clusterv1alpha1.Cluster) { c.Annotations = nil })
	is("and that is taken back", "east west", 2)
	edit("west", func(c *clusterv1alpha1.Cluster) {
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: clusterv1alpha1.ClusterReadyReason, LastTransitionTime: metav1.NewTime(noon.Add(time.Minute))})
	})
	clock.SetTime(noon.Add(time.Minute))
	is("one is back", "east", 2)
	if result, err := loop.Reconcile(t.Context(), reconcile.Request{}); err != nil || result.RequeueAfter != 5*time.Minute {
		t.Errorf("looks again %+v, %v", result, err)
	}
	clock.SetTime(noon.Add(6 * time.Minute))
	is("and has been for a while", "", 1)
}
