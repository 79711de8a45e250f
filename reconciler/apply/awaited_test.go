package apply_test

import (
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
)

// unhurried retries only after ten minutes, so that an earlier run comes from a watch.
func unhurried(spec *kustomizev1.KustomizationSpec) {
	spec.RetryInterval = &metav1.Duration{Duration: 10 * time.Minute}
}

// A revision that waits for an object is applied when the object is created, not at the next retry.
func TestWhatIsAwaitedIsNoticed(t *testing.T) {
	t.Run("a namespace", func(t *testing.T) {
		w := newWorld(t)
		name := w.namespace + "-later"
		revision := w.commit(map[string]string{"app/x.yaml": strings.ReplaceAll(configMaps(1), "NAMESPACE", name)})
		w.kustomization("web", unhurried)
		w.awaitReason("web", revision, applier.ReasonNamespaceNotFound)
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		w.ready("web", revision)
	})
	t.Run("a kind", func(t *testing.T) {
		g := newGadgets(t)
		revision := g.commit(map[string]string{"app/x.yaml": g.gadget("v1"), "definitions/x.yaml": g.definition("v1")})
		g.kustomization("web", unhurried)
		g.awaitReason("web", revision, applier.ReasonUnknownKind)
		g.kustomization("definitions", at("./definitions"))
		g.ready("web", revision)
	})
	t.Run("a right", func(t *testing.T) {
		w := newTenantWorld(t)
		revision := w.commit(map[string]string{"app/x.yaml": configMaps(1)})
		w.kustomization("web", unhurried)
		w.awaitReason("web", revision, applier.ReasonForbidden)
		w.allow("default", "edit", w.namespace)
		w.ready("web", revision)
	})
}
