package execution_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Objects of others in a namespace, or of a kind, are not deleted along with it
// before people allow that, and stay when the cluster leaves.
func TestWhatOthersHaveDoesNotGoAlong(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(t)
	for _, name := range []string{"bare", "mixed", "told", "stays"} {
		if err := f.hub.Hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the member has the namespace "+name, func(ctx context.Context) error {
			return f.edge.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
		})
		if name == "bare" {
			continue
		}
		if err := f.edge.Create(t.Context(), legacy(name)); err != nil {
			t.Fatal(err)
		}
	}
	f.allow(t, "told")
	for _, name := range []string{"bare", "mixed", "told"} { // at once: each takes five seconds to go, here and in the member
		if err := f.hub.Hub.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name string
		run  func(*testing.T, *fleet)
	}{
		{"a namespace with nothing of others goes with the hub's", testBare},
		{"one with something of others waits for a word", testMixed},
		{"one with something of others goes where that was said before", testAnnounced},
		{"a definition waits while there are objects of its kind", testDefinition},
		{"a cluster that leaves keeps what others have", testStays},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, f) }) {
			return
		}
	}
}

// legacy is an object that nobody manages.
func legacy(namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "legacy"}}
}

// dropped waits until a namespace is gone from the hub.
func (f *fleet) dropped(t *testing.T, name string) *corev1.Namespace {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	f.gone(t, f.hub.Hub, ns.DeepCopy())
	return ns
}

// gone waits until an object does not exist.
func (f *fleet) gone(t *testing.T, where client.Client, obj client.Object) {
	t.Helper()
	eventually(t, fmt.Sprintf("%T %s is gone", obj, obj.GetName()), func(ctx context.Context) error {
		if err := where.Get(ctx, client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

// blocked waits until a Work reports that an object blocks its deletion.
func (f *fleet) blocked(t *testing.T, name, because string) *workv1alpha1.Work {
	t.Helper()
	work := &workv1alpha1.Work{}
	eventually(t, "the deletion waits", func(ctx context.Context) error {
		if err := f.hub.Hub.Get(ctx, client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace("eu-1"), Name: name}, work); err != nil {
			return err
		}
		c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkDeletionBlocked)
		if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, because) {
			return fmt.Errorf("conditions: %v", work.Status.Conditions)
		}
		return nil
	})
	return work
}

func testBare(t *testing.T, f *fleet) {
	f.gone(t, f.edge, f.dropped(t, "bare"))
}

func testMixed(t *testing.T, f *fleet) {
	ns := f.dropped(t, "mixed")
	work := f.blocked(t, workv1alpha2.WorkName("Namespace", "mixed", ""), "ConfigMap legacy. Annotate this Work")
	if err := f.edge.Get(t.Context(), client.ObjectKeyFromObject(legacy("mixed")), legacy("mixed")); err != nil {
		t.Fatalf("what nobody manages: %v", err)
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, workv1alpha2.AllowCascadeAnnotation)
	if err := f.hub.Hub.Patch(t.Context(), work, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
	f.gone(t, f.hub.Hub, work)
	f.gone(t, f.edge, ns)
}

// allow annotates a namespace of the hub so that objects of others may be deleted with it,
// and waits until its Work has the annotation.
func (f *fleet) allow(t *testing.T, name string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, workv1alpha2.AllowCascadeAnnotation)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := f.hub.Hub.Patch(t.Context(), ns, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Work has the word", func(ctx context.Context) error {
		work := &workv1alpha1.Work{}
		if err := f.hub.Hub.Get(ctx, client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace("eu-1"), Name: workv1alpha2.WorkName("Namespace", name, "")}, work); err != nil {
			return err
		}
		if !strings.Contains(string(work.Spec.Workload.Manifests[0].Raw), workv1alpha2.AllowCascadeAnnotation) {
			return errors.New("not yet")
		}
		return nil
	})
}

func testAnnounced(t *testing.T, f *fleet) {
	f.gone(t, f.edge, f.dropped(t, "told"))
}

const widgets = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
	"spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
	"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}`

func testDefinition(t *testing.T, f *fleet) {
	work := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace("eu-1"), Name: "widgets"},
		Spec:       workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(widgets)}}}}},
	}
	if err := f.hub.Hub.Create(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"namespace": "default", "name": "precious"},
	}}
	eventually(t, "the member takes widgets", func(ctx context.Context) error { return f.edge.Create(ctx, widget.DeepCopy()) })
	own := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: "ours"},
		Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{
			Raw: []byte(`{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"namespace": "default", "name": "ours"}}`),
		}}}}},
	}
	if err := f.hub.Hub.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	ours := widget.DeepCopy()
	ours.SetName("ours")
	eventually(t, "the member has the hub's widget", func(ctx context.Context) error { return f.edge.Get(ctx, client.ObjectKeyFromObject(ours), ours) })
	if err := f.hub.Hub.Delete(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	f.blocked(t, "widgets", "of its kind in the cluster has left: Widget default/ours. See what that waits for: flotilla explain widget/ours -n default")
	if err := f.hub.Hub.Delete(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	f.blocked(t, "widgets", "Widget default/precious. Annotate")
	if err := f.edge.Delete(t.Context(), widget); err != nil {
		t.Fatal(err)
	}
	f.gone(t, f.hub.Hub, work) // by itself: nothing is in it any more
}

func testStays(t *testing.T, f *fleet) {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}}
	if err := f.hub.Hub.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	f.gone(t, f.hub.Hub, cluster)
	ns := &corev1.Namespace{}
	if err := f.edge.Get(t.Context(), client.ObjectKey{Name: "stays"}, ns); err != nil || ns.DeletionTimestamp != nil {
		t.Fatalf("the namespace with what others have: %v, %v", ns.DeletionTimestamp, err)
	}
	if _, managed := ns.Labels[workv1alpha2.ManagedByKarmadaLabel]; managed {
		t.Error("it still says that it is managed")
	}
	if err := f.edge.Get(t.Context(), client.ObjectKeyFromObject(legacy("stays")), legacy("stays")); err != nil {
		t.Errorf("what nobody manages: %v", err)
	}
}
