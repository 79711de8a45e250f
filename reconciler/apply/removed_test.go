package apply_test

import (
	"fmt"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// held is a Work that holds a ConfigMap as a Kustomization applied it.
func (w *world) held(name, owner string) *workv1alpha1.Work {
	w.t.Helper()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workv1alpha2.ExecutionNamespace(w.namespace)}}
	w.create(space)
	work := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: space.Name, Name: name,
			Labels:      map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: name},
			Annotations: map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotationKey: w.namespace, workv1alpha2.ResourceBindingNameAnnotationKey: workv1alpha2.BindingName("ConfigMap", name)},
		},
		Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{
			Raw: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":%q,"labels":{"kustomize.toolkit.fluxcd.io/name":%q,"kustomize.toolkit.fluxcd.io/namespace":%[2]q}}}`, name, w.namespace, owner),
		}}}}},
	}
	w.create(work)
	w.seen(work)
	return work
}

// What left with a Kustomization that a revision drops is kept in mind by the one that applied it: with it, all that
// says what clusters have yet to remove is gone. What it does not prune does not leave.
func TestWhatClustersHoldOfAKustomizationThatLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		prune bool
		want  []string
	}{
		"it prunes":         {true, []string{"child", "b"}},
		"it does not prune": {false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			child := fmt.Sprintf(`
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: child, namespace: NAMESPACE}
spec: {interval: 1h, path: ./child, prune: %v, sourceRef: {kind: GitRepository, name: fleet}}
`, tc.prune)
			files := map[string]string{"app/config.yaml": named("a") + child, "child/config.yaml": named("b")}
			first := w.commit(files)
			w.kustomization("web")
			w.ready("web", first)
			w.ready("child", first)
			w.held("b", "child")
			files["app/config.yaml"] = named("a")
			ks := w.ready("web", w.commit(files))
			var got []string
			for _, id := range inventory.Removed(ks.Status) {
				got = append(got, id.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("what clusters hold (-want +got):\n%s", diff)
			}
			w.until("the child is gone", func() (bool, string) {
				return w.object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", w.namespace, "child") == nil, ""
			})
		})
	}
}

// What left a revision is kept in mind for as long as a cluster holds it, over later revisions and a
// health check that takes its time.
func TestWhatClustersHoldOfWhatLeft(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{"app/config.yaml": named("a", "b", "c")}
	first := w.commit(files)
	w.kustomization("web")
	w.ready("web", first)
	work := w.held("b", "web")

	remains := func(ks *kustomizev1.Kustomization, want ...string) {
		t.Helper()
		var got []string
		for _, id := range inventory.Removed(ks.Status) {
			got = append(got, id.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("what clusters hold at %s (-want +got):\n%s", ks.Status.LastAppliedRevision, diff)
		}
	}
	files["app/config.yaml"] = named("a", "c")
	remains(w.ready("web", w.commit(files)), "b")
	files["app/config.yaml"] = named("a", "c", "d")
	remains(w.ready("web", w.commit(files)), "b")
	files["app/config.yaml"] = named("a", "b", "d")
	remains(w.ready("web", w.commit(files)))
	files["app/config.yaml"] = named("a", "d")
	remains(w.ready("web", w.commit(files)), "b")
	if err := w.Hub.Delete(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	w.until("the loop knows that the Work is gone", func() (bool, string) {
		err := w.cache.Get(t.Context(), client.ObjectKeyFromObject(work), &workv1alpha1.Work{})
		return err != nil, ""
	})
	files["app/config.yaml"] = named("a")
	remains(w.ready("web", w.commit(files)))
}
