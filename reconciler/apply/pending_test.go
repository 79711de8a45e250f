package apply_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/reconciler/apply"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// slowBuilder delays the builds of a Kustomization.
type slowBuilder struct {
	apply.Builder
	mu   sync.Mutex
	slow string
}

func (b *slowBuilder) Build(ctx context.Context, in builder.Input) ([]*unstructured.Unstructured, error) {
	b.mu.Lock()
	waits := in.Keep && in.Kustomization.Name == b.slow
	b.mu.Unlock()
	if waits {
		return nil, errors.New("not yet")
	}
	return b.Builder.Build(ctx, in)
}

// holds delays the builds of a Kustomization from now on; empty for none.
func (b *slowBuilder) holds(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slow = name
}

// A commit removes an application: its Kustomization finds its folder gone before it is deleted itself, which is not
// reported as a failure.
func TestAChildThatIsRetiredIsNotReportedAsFailed(t *testing.T) {
	slow := &slowBuilder{}
	w := newWorldWith(t, shared.Env(t), func(inner apply.Builder) apply.Builder {
		slow.Builder = inner
		return slow
	})
	files := map[string]string{"app/child.yaml": child("inner", "inner"), "app/config.yaml": named("own"), "inner/config.yaml": configMaps(3)}
	first := w.commit(files)
	w.kustomization("web")
	w.ready("web", first)
	w.ready("inner", first)
	w.until("it settled", func() (bool, string) {
		return slices.Contains(w.events.reasonsOf("inner"), meta.ReconciliationSucceededReason), ""
	})

	slow.holds("web")
	w.allows = "kustomization/" + w.namespace + "/inner"
	second := w.commit(map[string]string{"app/config.yaml": named("own")})
	message := w.awaitReason("inner", second, meta.ProgressingReason)
	want := "waiting for Kustomization " + w.namespace + "/web, which has yet to apply revision " + second + `; until then: spec.path "./inner": path not found in the source, which has app`
	if message != want {
		t.Errorf("message = %q, want %q", message, want)
	}
	slow.holds("")
	w.ready("web", second)
	w.until("it is gone", func() (bool, string) {
		return w.object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", w.namespace, "inner") == nil, ""
	})
	if reasons := w.events.reasonsOf("inner"); slices.Contains(reasons, builder.ReasonPathNotFound) {
		t.Errorf("told as failed: %v", reasons)
	}
}

// Where no parent may undo it, a missing folder is reported at once.
func TestAChildThatLosesItsFolder(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{"app/child.yaml": child("inner", "inner"), "app/config.yaml": named("own"), "inner/config.yaml": configMaps(3)}
	first := w.commit(files)
	w.kustomization("web")
	w.ready("web", first)
	w.ready("inner", first)
	delete(files, "inner/config.yaml")
	w.awaitReason("inner", w.commit(files), builder.ReasonPathNotFound)
}

// A commit moves an application to another namespace, and allows the deletion of the old one: what was in that is
// deleted with it, and the brake of the Kustomization that applied it does not report a refusal.
func TestANamespaceThatIsRenamedIsNotReportedAsPending(t *testing.T) {
	w := newWorld(t)
	files := func(space string) map[string]string {
		return map[string]string{
			"app/child.yaml": strings.Replace(child("inner", "inner"), "spec: {", "spec: {targetNamespace: NAMESPACE-"+space+", ", 1),
			"app/space.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: NAMESPACE-" + space + "}\n",
			"app/own.yaml":   named("own"), "inner/config.yaml": configMaps(3),
		}
	}
	first := w.commit(files("a"))
	w.kustomization("web")
	w.ready("web", first)
	w.ready("inner", first)
	w.allows = "namespace/" + w.namespace + "-a"
	second := w.commit(files("b"))
	w.ready("web", second)
	w.ready("inner", second)
	w.until("it is in the new one", func() (bool, string) {
		return w.object("v1", "ConfigMap", w.namespace+"-b", "config-02") != nil, ""
	})
	w.ready("inner", second)
	if reasons := w.events.reasonsOf("inner"); slices.Contains(reasons, inventory.ReasonPruneBlocked) {
		t.Errorf("told as held: %v", w.events.about("inner"))
	}
}
