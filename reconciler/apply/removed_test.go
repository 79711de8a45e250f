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

// What left a revision is kept in mind for as long as a cluster holds it, over later revisions and a
// health check that takes its time.
func TestWhatClustersHoldOfWhatLeft(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{"app/config.yaml": named("a", "b", "c")}
	first := w.commit(files)
	w.kustomization("web")
	w.ready("web", first)
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workv1alpha2.ExecutionNamespace(w.namespace)}}
	w.create(space)
	work := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: space.Name, Name: "b",
			Labels:      map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "b"},
			Annotations: map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotationKey: w.namespace, workv1alpha2.ResourceBindingNameAnnotationKey: workv1alpha2.BindingName("ConfigMap", "b")},
		},
		Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{
			Raw: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","namespace":%q,"labels":{"kustomize.toolkit.fluxcd.io/name":"web","kustomize.toolkit.fluxcd.io/namespace":%[1]q}}}`, w.namespace),
		}}}}},
	}
	w.create(work)
	w.seen(work)

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
