package change_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// TestUndoKeepsWhatWasThereBefore: a template that the control plane had before the
// promotion stays, what runs is the cluster's own again, and who owns its fields
// does not name the fleet.
func TestUndoKeepsWhatWasThereBefore(t *testing.T) {
	w := newWorld(t)
	w.run(t, "shop")
	before := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}, Data: map[string]string{"color": "blue"}}
	err := errors.Join(
		w.Hub.Hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}),
		w.Hub.Hub.Create(t.Context(), before),
	)
	if err != nil {
		t.Fatal(err)
	}
	running := w.running(t, "shop")
	if got := w.direct(t, "deployment", "web", "-n", "shop", "--dependencies"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	w.carried(t)
	want := result{Out: `Deployment shop/web given back to cluster east
ConfigMap shop/settings given back to cluster east; its template was there before and stays
Secret shop/db given back to cluster east
ServiceAccount shop/web given back to cluster east
PropagationPolicy shop/web-7fd7ff5bf5 deleted
`}
	if diff := cmp.Diff(want, w.direct(t, "deployment", "web", "-n", "shop", "--undo")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(running, w.running(t, "shop")); diff != "" {
		t.Errorf("what runs in the member (-before +after):\n%s", diff)
	}
	if have, err := w.managed(t.Context(), "shop"); err != nil || len(have) > 0 {
		t.Errorf("still marked: %v, %v", have, err)
	}
	w.unowned(t)
	after := &corev1.ConfigMap{}
	if err := w.Hub.Hub.Get(t.Context(), client.ObjectKeyFromObject(before), after); err != nil || after.UID != before.UID || len(after.Labels) > 0 {
		t.Errorf("the template that was there: %v %v %v", after.UID, after.Labels, err)
	}
	if err := w.Hub.Hub.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		t.Errorf("the template that was made: %v", err)
	}
	w.uncarried(t)
}

// unowned errs if the fleet owns a field of an object in the member.
func (w *world) unowned(t *testing.T) {
	t.Helper()
	for _, obj := range []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "db"}}, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "web"}},
	} {
		if err := w.Edge.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: obj.GetName()}, obj); err != nil {
			t.Error(err)
		}
		for _, e := range obj.GetManagedFields() {
			if e.Manager == "flotilla" || e.Manager == "flotilla-promote" {
				t.Errorf("%T %s: %s owns %s", obj, obj.GetName(), e.Manager, e.FieldsV1)
			}
		}
	}
}

// uncarried errs if anything of the namespace is carried to the member.
func (w *world) uncarried(t *testing.T) {
	t.Helper()
	bindings := &workv1alpha2.ResourceBindingList{}
	if err := w.Hub.Hub.List(t.Context(), bindings, client.InNamespace("shop")); err != nil || len(bindings.Items) > 0 {
		t.Errorf("%d bindings are left, %v", len(bindings.Items), err)
	}
}
