package apply_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
