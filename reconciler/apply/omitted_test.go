package apply_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestOwnersInGitAreNotApplied: the UID of an owner reference in a file is from another cluster. The garbage collector,
// which runs here, would delete the object again and again.
func TestOwnersInGitAreNotApplied(t *testing.T) {
	w := newWorld(t)
	const owner = `
  ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: 11111111-1111-1111-1111-111111111111}]`
	claim := func(more, size string) map[string]string {
		return map[string]string{"app/claim.yaml": "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: data\n  namespace: NAMESPACE\n  annotations: {size: " + size + "}" + more +
			"\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"}
	}
	first := w.commit(claim("", "small"))
	w.kustomization("web")
	w.ready("web", first)
	uid := w.object("v1", "PersistentVolumeClaim", w.namespace, "data").GetUID()

	second := w.commit(claim(owner, "large"))
	w.ready("web", second)
	found := w.object("v1", "PersistentVolumeClaim", w.namespace, "data")
	if found == nil || found.GetUID() != uid || found.GetDeletionTimestamp() != nil || len(found.GetOwnerReferences()) > 0 {
		t.Fatalf("the claim was collected, or would be: %+v", found)
	}
	if size := found.GetAnnotations()["size"]; size != "large" {
		t.Errorf("size = %q: the rest of the change is not applied", size)
	}
	events := func() (texts []string) {
		for _, text := range w.events.about("web") {
			if rest, is := strings.CutPrefix(text, applier.ReasonOmitted+": "); is {
				texts = append(texts, rest)
			}
		}
		return texts
	}
	w.until("told", func() (bool, string) { return len(events()) > 0, "" })
	third := w.commit(claim(owner, "larger"))
	w.ready("web", third)
	w.until("told again", func() (bool, string) { return len(events()) > 1, "" })
	w.annotate("web", meta.ReconcileRequestAnnotation, "now")
	w.until("looked at again", func() (bool, string) { return w.get("web").Status.LastHandledReconcileAt == "now", "" })
	about := ": metadata.ownerReferences of PersistentVolumeClaim/" + w.namespace + "/data: they name owners of another cluster by their UIDs, and what has an owner that is not there is deleted; remove them from the files"
	want := []string{"Not applied of revision " + second + about, "Not applied of revision " + third + about}
	if diff := cmp.Diff(want, events()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// TestOwnersThatWereAppliedGo: owner references that an earlier apply of ours wrote are removed by the next one; those
// of others stay.
func TestOwnersThatWereAppliedGo(t *testing.T) {
	w := newWorld(t)
	parent := w.ownerOf("parent")
	revision := w.commit(map[string]string{"app/config.yaml": named("a") + "---\n" + named("b")})
	for name, manager := range map[string]string{"a": applier.FieldManager, "b": "an-operator"} {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		obj.SetNamespace(w.namespace)
		obj.SetName(name)
		obj.SetLabels(inventory.OwnerLabels(client.ObjectKey{Namespace: w.namespace, Name: "web"}))
		obj.SetOwnerReferences([]metav1.OwnerReference{parent})
		if err := w.Hub.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner(manager)); err != nil {
			t.Fatal(err)
		}
	}
	w.kustomization("web")
	w.ready("web", revision)
	for name, want := range map[string][]metav1.OwnerReference{"a": nil, "b": {parent}} {
		if diff := cmp.Diff(want, w.configMap(name).GetOwnerReferences()); diff != "" {
			t.Errorf("owners of %s (-want +got):\n%s", name, diff)
		}
	}
}

// ownerOf creates a ConfigMap, and returns an owner reference to it.
func (w *world) ownerOf(name string) metav1.OwnerReference {
	w.t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	obj.SetNamespace(w.namespace)
	obj.SetName(name)
	w.create(obj)
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: obj.GetUID()}
}

// TestTokensOfAccountsThatAreNotThere: the control plane would delete the token Secret of a missing account at once.
func TestTokensOfAccountsThatAreNotThere(t *testing.T) {
	w := newWorld(t)
	const token = "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/service-account-token\nmetadata: {name: token, namespace: NAMESPACE, annotations: {kubernetes.io/service-account.name: robot}}\n"
	const account = "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: robot, namespace: NAMESPACE}\n"
	first := w.commit(map[string]string{"app/token.yaml": token, "app/config.yaml": named("a")})
	w.kustomization("web")
	message := w.awaitReason("web", first, applier.ReasonAccountNotFound)
	const want = "/token: it is to hold the token of the service account robot, which the control plane does not have"
	if !strings.Contains(message, want) || w.configMap("a") != nil {
		t.Errorf("message %q, want %q, and nothing applied", message, want)
	}
	second := w.commit(map[string]string{"app/token.yaml": token + account, "app/config.yaml": named("a")})
	w.ready("web", second)
	w.until("filled", func() (bool, string) {
		secret := w.object("v1", "Secret", w.namespace, "token")
		return secret != nil && secret.Object["data"] != nil, ""
	})
}
