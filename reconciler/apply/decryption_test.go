package apply_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sealedFile reads a file that the library of SOPS wrote (see e2e/sops).
func sealedFile(t testing.TB, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "sources", "sops", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// decrypted returns what the Secret db has; empty where there is none.
func (w *world) decrypted() string {
	w.t.Helper()
	obj := w.object("v1", "Secret", w.namespace, "db")
	if obj == nil {
		return ""
	}
	text, _, _ := unstructured.NestedString(obj.Object, "data", "user")
	return text
}

// TestEncryptedRevision: a revision is decrypted with the key of a Secret, one that was tampered with is refused, and what is
// applied stays where the key goes away. Nothing tells what was encrypted.
func TestEncryptedRevision(t *testing.T) {
	logs := &logged{}
	w := newWorldLogging(t, funcr.New(logs.add, funcr.Options{}))
	const shop = "c2hvcA=="
	key := func() *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "sops", Labels: map[string]string{meta.LabelKeyWatch: "Enabled"}},
			Data:       map[string][]byte{"key.agekey": []byte(sealedFile(t, "key.agekey"))},
		}
	}
	first := w.commit(map[string]string{"app/db.yaml": sealedFile(t, "secret.yaml")})
	w.kustomization("web", func(spec *kustomizev1.KustomizationSpec) {
		spec.TargetNamespace = w.namespace
		spec.Decryption = &kustomizev1.Decryption{Provider: "sops", SecretRef: &meta.LocalObjectReference{Name: "sops"}}
	})
	says := func(when, text string) {
		t.Helper()
		w.until(when, func() (bool, string) {
			got := w.texts("web", logs)
			return strings.Contains(got, text), got
		})
	}
	w.awaitReason("web", first, meta.BuildFailedReason)
	says("the key is missing", "the Secret "+w.namespace+"/sops does not exist: create it, with the private key as NAME.agekey or NAME.asc")
	w.create(key())
	w.ready("web", first)
	if diff := cmp.Diff(shop, w.decrypted()); diff != "" {
		t.Errorf("decrypted (-want +got):\n%s", diff)
	}

	tampered := w.commit(map[string]string{"app/db.yaml": strings.Replace(sealedFile(t, "secret.yaml"), "name: db", "name: dc", 1)})
	w.awaitReason("web", tampered, meta.BuildFailedReason)
	says("it was tampered with", "app/db.yaml: cannot be decrypted: it was changed after it was encrypted: its MAC does not match")

	second := w.commit(map[string]string{"app/db.yaml": sealedFile(t, "secret.yaml"), "app/config.yaml": configMaps(1)})
	w.ready("web", second)
	if err := w.Hub.Delete(t.Context(), key(), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	w.awaitReason("web", second, meta.BuildFailedReason)
	if diff := cmp.Diff(shop, w.decrypted()); diff != "" {
		t.Errorf("decrypted, without the key (-want +got):\n%s", diff)
	}
	other := key()
	other.Data = map[string][]byte{"key.asc": []byte(sealedFile(t, "key.asc"))}
	w.create(other)
	says("the key is another", "app/db.yaml: no key decrypts it: it is encrypted for age1")
	if err := w.Hub.Update(t.Context(), func() *corev1.Secret { other.Data = key().Data; return other }()); err != nil {
		t.Fatal(err)
	}
	w.ready("web", second)
	for _, text := range []string{"correct: horse", "battery 'staple'", "AGE-SECRET-KEY"} {
		if got := w.texts("web", logs); strings.Contains(got, text) {
			t.Errorf("%s is told:\n%s", text, got)
		}
	}
}

// TestKeysAreReadAsTheAccount: a tenant's key is read with the rights of the account that acts.
func TestKeysAreReadAsTheAccount(t *testing.T) {
	w := newTenantWorld(t)
	revision := w.commit(map[string]string{"app/config.yaml": configMaps(1)})
	w.kustomization("web", func(spec *kustomizev1.KustomizationSpec) {
		spec.Decryption = &kustomizev1.Decryption{Provider: "sops", SecretRef: &meta.LocalObjectReference{Name: "sops"}}
	})
	message := w.awaitReason("web", revision, "Forbidden")
	if want := `cannot get resource "secrets" in API group "" in the namespace "` + w.namespace + `"`; !strings.Contains(message, want) || !strings.Contains(message, "kubectl create role") {
		t.Errorf("it says %s, want %s and how to allow it", message, want)
	}
}
