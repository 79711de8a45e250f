package apply_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestANamespaceThatIsBeingDeletedIsWaitedFor: the server forbids to make objects in it, which is no matter of rights. What
// was in it comes back once there is the next one, and not at the interval.
func TestANamespaceThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-shop"}}
	blocked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Name, Name: "held", Finalizers: []string{"example.org/hold"}}}
	w.create(shop.DeepCopy())
	w.create(blocked)
	revision := w.commit(map[string]string{"app/x.yaml": strings.ReplaceAll(configMaps(1), "NAMESPACE", shop.Name)})
	w.kustomization("web", unhurried)
	w.ready("web", revision)

	if err := w.Hub.Delete(t.Context(), shop.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	w.until("all else in it is gone", func() (bool, string) {
		var list corev1.ConfigMapList
		err := w.Hub.List(t.Context(), &list, client.InNamespace(shop.Name))
		return err == nil && len(list.Items) == 1, ""
	})
	w.annotate("web", meta.ReconcileRequestAnnotation, "now")
	if message := w.awaitReason("web", revision, inventory.ReasonNamespaceTerminating); !strings.Contains(message, "the namespace "+shop.Name+" is being deleted: wait until it is gone") {
		t.Errorf("message = %q", message)
	}

	if err := w.Hub.Patch(t.Context(), blocked, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	w.until("the next one is there", func() (bool, string) {
		err := w.Hub.Create(t.Context(), shop.DeepCopy())
		return err == nil, ""
	})
	w.ready("web", revision)
}

// TestANamespaceOfTheRevisionThatIsBeingDeleted: the Kustomization says which namespace it waits for, and makes it again with
// what was in it.
func TestANamespaceOfTheRevisionThatIsBeingDeleted(t *testing.T) {
	w := newWorld(t)
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-shop"}}
	revision := w.commit(map[string]string{
		"app/ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + shop.Name + "}\n",
		"app/x.yaml":  strings.ReplaceAll(configMaps(1), "NAMESPACE", shop.Name),
	})
	w.kustomization("web", unhurried)
	w.ready("web", revision)
	blocked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Name, Name: "held", Finalizers: []string{"example.org/hold"}}}
	w.create(blocked)

	if err := w.Hub.Delete(t.Context(), shop.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	w.annotate("web", meta.ReconcileRequestAnnotation, "now")
	want := "waiting until what is being deleted is gone, and made again: namespace " + shop.Name
	w.until("it says what it waits for", func() (bool, string) {
		c := apimeta.FindStatusCondition(w.get("web").Status.Conditions, meta.ReadyCondition)
		return c != nil && c.Message == want, c.Message
	})

	if err := w.Hub.Patch(t.Context(), blocked, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	w.ready("web", revision)
}
