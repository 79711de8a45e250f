package cascadingdeletion

import (
	"context"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/running"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestWhatIsCarriedMayRun: the binding of an object of a third-party kind shows whether it runs in clusters, if it is
// lost by itself or with a Kustomization.
func TestWhatIsCarriedMayRun(t *testing.T) {
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	monitor := schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}
	rollout := schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}
	entry := func(gvk schema.GroupVersionKind) inventory.Entry {
		return inventory.Entry{ID: inventory.ID{Namespace: "shop", Name: "web", GroupKind: gvk.GroupKind()}, Version: gvk.Version}
	}
	bound := func(gvk schema.GroupVersionKind, replicas int32) client.Object {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: workv1alpha2.BindingName(gvk.Kind, "web")}}
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: "shop", Name: "web"}
		b.Spec.Replicas = replicas
		return b
	}
	other := widget
	other.Group = "example.org"
	for name, tc := range map[string]struct {
		of      schema.GroupVersionKind
		binding client.Object
		carried running.Class
		runs    int
	}{
		"a policy carries it":               {widget, bound(widget, 0), running.Foreign, 1},
		"it has replicas":                   {widget, bound(widget, 3), running.Runs, 1},
		"no policy carries it":              {widget, nil, running.Passive, 0},
		"what has its name is carried":      {widget, bound(other, 3), running.Passive, 0},
		"it is known to run nothing":        {monitor, bound(monitor, 0), running.Passive, 0},
		"it is known to run Pods, as it is": {rollout, nil, running.Passive, 1},
	} {
		t.Run(name, func(t *testing.T) {
			child := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "child"}, Spec: kustomizev1.KustomizationSpec{Prune: true}}
			child.Status.Inventory = inventory.Record([]inventory.Entry{entry(tc.of)})
			own := &unstructured.Unstructured{}
			own.SetGroupVersionKind(tc.of)
			own.SetNamespace("shop")
			own.SetName("web")
			build := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(child, own, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
			if tc.binding != nil {
				build = build.WithObjects(tc.binding)
			}
			c := &Counter{hub: build.Build()}
			kept := func(context.Context, *kustomizev1.Kustomization, []inventory.Entry) (map[inventory.ID]bool, error) {
				return nil, nil
			}
			parent := inventory.Entry{ID: inventory.OfKustomization(client.ObjectKeyFromObject(child)), Version: "v1"}
			got, err := c.Of(t.Context(), []inventory.Entry{parent}, Revision{Kept: kept})
			if err != nil {
				t.Fatal(err)
			}
			alone, err := c.Of(t.Context(), []inventory.Entry{entry(tc.of)}, Revision{Kept: kept})
			if err != nil {
				t.Fatal(err)
			}
			want := []inventory.Loss{{ID: parent.ID, Within: 1, Runs: tc.runs}, {ID: entry(tc.of).ID, Carried: tc.carried}}
			if diff := cmp.Diff(want, append(got, alone...)); diff != "" {
				t.Errorf("losses (-want +got):\n%s", diff)
			}
		})
	}
}
