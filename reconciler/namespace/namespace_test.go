package namespace

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// shop is a hub with one cluster and one namespace, a loop, and what a look of it makes.
func shop(t *testing.T) (client.Client, *Reconciler, func() []workv1alpha1.Work) {
	t.Helper()
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-eu-1"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "n"}},
	).Build()
	r := New(hub, Options{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))})
	read := func() []workv1alpha1.Work {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "shop"}}); err != nil {
			t.Fatal(err)
		}
		var works workv1alpha1.WorkList
		if err := hub.List(t.Context(), &works, client.InNamespace("karmada-es-eu-1")); err != nil {
			t.Fatal(err)
		}
		return works.Items
	}
	return hub, r, read
}

// TestANamespaceThatIsMadeAnew: the Work that was to remove it learns that it is wanted
// again, once.
func TestANamespaceThatIsMadeAnew(t *testing.T) {
	hub, r, read := shop(t)
	leaving := read()[0]
	if err := hub.Delete(t.Context(), &leaving); err != nil {
		t.Fatal(err)
	}
	reported := read()[0]
	if reported.Annotations[workv1alpha2.WantedAgainAnnotation] != "true" || reported.DeletionTimestamp.IsZero() {
		t.Errorf("the Work: %v", reported.ObjectMeta)
	}
	again := read()[0]
	if again.ResourceVersion != reported.ResourceVersion {
		t.Error("it is told twice")
	}
	meta.SetStatusCondition(&again.Status.Conditions, metav1.Condition{Type: workv1alpha1.WorkDeletionBlocked, Status: metav1.ConditionTrue, Reason: workv1alpha1.WorkWantedAgainReason})
	if !r.workEvents().Update(event.UpdateEvent{ObjectOld: &reported, ObjectNew: &again}) {
		t.Error("nobody hears that the cluster has let go of it")
	}
	if err := hub.Update(t.Context(), &again); err != nil {
		t.Fatal(err)
	}
	if next := read()[0]; next.UID == again.UID && !next.DeletionTimestamp.IsZero() {
		t.Errorf("the next Work: %v", next.ObjectMeta)
	}
}

// TestANamespaceThatGoesOnceMore: what was to stay for one that has come back goes when that goes as well, also where
// nobody was looking when it did.
func TestANamespaceThatGoesOnceMore(t *testing.T) {
	hub, r, look := shop(t)
	leaving := look()[0]
	if err := hub.Delete(t.Context(), &leaving); err != nil {
		t.Fatal(err)
	}
	recalled := look()[0]
	if !r.workEvents().Create(event.CreateEvent{Object: &recalled}) {
		t.Error("a start does not look at a namespace that was wanted again")
	}
	gone := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	if err := hub.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if !contentChanges().Delete(event.DeleteEvent{Object: gone}) {
		t.Error("the end of a namespace is not looked into")
	}
	if work := look()[0]; work.Annotations[workv1alpha2.WantedAgainAnnotation] != "" || work.DeletionTimestamp.IsZero() {
		t.Errorf("the Work once its namespace is gone: %v", work.ObjectMeta)
	}
}

func TestAWorkThatIsRemovedSoonAfterItWasMadeIsMadeAgain(t *testing.T) {
	hub, r, read := shop(t)
	works := read()
	if len(works) != 1 {
		t.Fatalf("works: %v", works)
	}
	r.workEvents().Create(event.CreateEvent{Object: &works[0]})
	works[0].Finalizers = nil
	if err := hub.Update(t.Context(), &works[0]); err != nil {
		t.Fatal(err)
	}
	if err := hub.Delete(t.Context(), &works[0]); err != nil {
		t.Fatal(err)
	}
	if !r.workEvents().Delete(event.DeleteEvent{Object: &works[0]}) {
		t.Error("a loss is not looked into")
	}
	if works := read(); len(works) != 1 {
		t.Errorf("works after the loss: %v", works)
	}
}
