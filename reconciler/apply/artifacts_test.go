package apply_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestArtifactsOfOthersAreNotApplied: a status that names an artifact which another repository
// fetched does not make the loop read it.
func TestArtifactsOfOthersAreNotApplied(t *testing.T) {
	w := newWorld(t)
	w.kustomization("app")
	w.commitOf("theirs", map[string]string{"app/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, namespace: NAMESPACE}\n"})
	w.until("the Kustomization says that it waits", func() (bool, string) {
		for _, c := range w.get("app").Status.Conditions {
			if c.Type == "Ready" && strings.Contains(c.Message, "was not fetched by its source") {
				return true, ""
			}
		}
		return false, "conditions: " + conditionsOf(w, "app")
	})
	err := w.Hub.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "theirs"}, &corev1.ConfigMap{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("what another repository fetched was applied: %v", err)
	}
	w.commit(map[string]string{"app/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own, namespace: NAMESPACE}\n"})
	w.until("its own is applied", func() (bool, string) {
		err := w.Hub.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "own"}, &corev1.ConfigMap{})
		return err == nil, conditionsOf(w, "app")
	})
}

func conditionsOf(w *world, name string) string {
	var out []string
	for _, c := range w.get(name).Status.Conditions {
		out = append(out, c.Type+" "+string(c.Status)+" "+c.Message)
	}
	return strings.Join(out, "; ")
}

// TestWhatIsNotVerifiedIsNotApplied: once a source asks for signatures, an artifact is built only when its commit is
// verified, and then at once.
func TestWhatIsNotVerifiedIsNotApplied(t *testing.T) {
	w := newWorld(t)
	revision := w.commit(map[string]string{"app/x.yaml": configMaps(1)})
	w.kustomization("web", unhurried)
	w.ready("web", revision)
	repository := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fleet"}}
	patch := func(of client.SubResourceWriter, json string) {
		t.Helper()
		var err error
		if of == nil {
			err = w.Hub.Patch(t.Context(), repository, client.RawPatch(types.MergePatchType, []byte(json)))
		} else {
			err = of.Patch(t.Context(), repository, client.RawPatch(types.MergePatchType, []byte(json)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	patch(nil, `{"spec":{"verify":{"mode":"HEAD","secretRef":{"name":"signers"}}}}`)
	revision = w.commit(map[string]string{"app/x.yaml": configMaps(2)})
	w.until("it waits for the signature", func() (bool, string) {
		c := apimeta.FindStatusCondition(w.get("web").Status.Conditions, meta.ReadyCondition)
		return c.Reason == meta.ArtifactFailedReason && strings.Contains(c.Message, "is not verified as spec.verify of GitRepository "), c.Message
	})
	if w.object("v1", "ConfigMap", w.namespace, "config-01") != nil {
		t.Error("what is not verified was applied")
	}
	patch(w.Hub.Status(), `{"status":{"sourceVerificationMode":"HEAD","artifact":{"metadata":{"gitops.flotilla.io/commit-signing-key":"A1"}}}}`)
	w.ready("web", revision)
	if w.object("v1", "ConfigMap", w.namespace, "config-01") == nil {
		t.Error("what is verified was not applied")
	}
}
