package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// TestAClusterGoesWithTheLastOfItsWorks: its Works are deleted at once, and it does not
// wait for the seconds that its namespace takes, but for whatever holds a Work.
func TestAClusterGoesWithTheLastOfItsWorks(t *testing.T) {
	space := workv1alpha2.ExecutionNamespace("edge-1")
	key := client.ObjectKey{Name: "edge-1"}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "web", Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer}}}
	w := watchOver(pulled(metav1.ConditionTrue), work.DeepCopy(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space, Finalizers: []string{"example.com/housekeeping"}}})
	if err := w.hub.Delete(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "edge-1"}}); err != nil {
		t.Fatal(err)
	}
	leaves := func() bool {
		t.Helper()
		for range 3 {
			if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
		}
		err := w.hub.Get(t.Context(), key, &clusterv1alpha1.Cluster{})
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return apierrors.IsNotFound(err)
	}
	if leaves() {
		t.Error("it left while its agent had a work to take down")
	}
	if err := w.hub.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil || work.DeletionTimestamp.IsZero() {
		t.Errorf("the work is not being deleted: %v", err)
	}
	work.Finalizers = nil
	if err := w.hub.Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	late := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "late"}}
	w.spaces.live = fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(late).Build()
	if leaves() {
		t.Error("it left with a work that the cache did not have yet")
	}
	w.spaces.live = w.hub
	if !leaves() {
		t.Error("it waits for its namespace")
	}
}
