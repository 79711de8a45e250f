package apply_test

import (
	"fmt"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// held is a Work that holds a ConfigMap as a Kustomization applied it.
func (w *world) workOf(name, owner string) *workv1alpha1.Work {
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

// What left with a Kustomization that a revision drops is recorded by the Kustomization that applied it: the status of
// the dropped one, which would record it, is gone. What the dropped one does not prune does not leave.
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
			w.workOf("b", "child")
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

// What left a revision is recorded for as long as a cluster holds it, through later revisions and a long health
// check.
func TestWhatClustersHoldOfWhatLeft(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{"app/config.yaml": named("a", "b", "c")}
	first := w.commit(files)
	w.kustomization("web")
	w.ready("web", first)
	work := w.workOf("b", "web")

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

// hold puts a finalizer on a ConfigMap, or takes it off.
func (w *world) hold(name string, finalizers ...any) {
	w.t.Helper()
	w.edit(w.configMap(name), finalizers, "metadata", "finalizers")
}

// terminating waits until the status of a Kustomization names exactly these, with what keeps them.
func (w *world) terminating(name string, want ...string) *kustomizev1.Kustomization {
	w.t.Helper()
	ks := w.get(name)
	w.until(fmt.Sprintf("%s says that %q is being deleted", name, want), func() (bool, string) {
		ks = w.get(name)
		var got []string
		found, _ := inventory.TerminatingIn(ks.Status)
		for _, t := range found {
			got = append(got, t.ID.Name+" "+t.Keeps)
		}
		return cmp.Equal(want, got), fmt.Sprint(got)
	})
	return ks
}

// What left a revision and is kept on the control plane by a finalizer is reported until it is gone, through later
// revisions. A new object with its name is another one.
func TestWhatHangsOnTheControlPlane(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{"app/config.yaml": named("a", "b", "c", "d")}
	first := w.commit(files)
	w.kustomization("web")
	w.ready("web", first)
	w.hold("b", "example.com/hold", "example.com/more")
	files["app/config.yaml"] = named("a", "c", "d")
	second := w.commit(files)
	ks := w.ready("web", second)
	ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
	want := "Applied revision: " + second + "; still being deleted: ConfigMap/NS/b (kept by its finalizers: example.com/hold, example.com/more)"
	if got := strings.ReplaceAll(ready.Message, w.namespace, "NS"); got != want {
		t.Errorf("Ready says %q, want %q", got, want)
	}
	w.terminating("web", "b kept by its finalizers: example.com/hold, example.com/more")

	w.hold("b", "example.com/hold")
	w.terminating("web", "b kept by its finalizers: example.com/hold")
	files["app/config.yaml"] = named("a", "d")
	w.ready("web", w.commit(files))
	w.terminating("web", "b kept by its finalizers: example.com/hold")

	w.hold("b")
	ks = w.terminating("web")
	ready = apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
	if want := "Applied revision: " + ks.Status.LastAppliedRevision; ready.Message != want {
		t.Errorf("Ready says %q once it is gone, want %q", ready.Message, want)
	}
}

// What is deleted along with a dropped Kustomization, and is kept on the control plane by a finalizer, is reported by
// the Kustomization that applied the dropped one, for as long as it is there.
func TestWhatHangsOfAKustomizationThatLeft(t *testing.T) {
	const child = `
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: child, namespace: NAMESPACE}
spec: {interval: 1h, path: ./child, prune: true, sourceRef: {kind: GitRepository, name: fleet}}
`
	w := newWorld(t)
	files := map[string]string{"app/config.yaml": named("a") + child, "child/config.yaml": named("b", "c")}
	first := w.commit(files)
	w.kustomization("web")
	w.ready("web", first)
	w.ready("child", first)
	w.hold("b", "example.com/hold")
	files["app/config.yaml"] = named("a")
	w.commit(files)
	w.until("the child is gone", func() (bool, string) {
		return w.object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", w.namespace, "child") == nil, ""
	})
	const kept = "b kept by its finalizers: example.com/hold"
	w.terminating("web", kept)
	w.annotate("web", meta.ReconcileRequestAnnotation, "now")
	w.until("that was looked at again", func() (bool, string) { return w.get("web").Status.LastHandledReconcileAt == "now", "" })
	w.terminating("web", kept)
	w.hold("b")
	w.terminating("web")
}
