package siblings

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// ChildrenIn returns the Kustomizations among objects.
func ChildrenIn(objects []*unstructured.Unstructured) []*kustomizev1.Kustomization {
	var out []*kustomizev1.Kustomization
	for _, obj := range objects {
		if obj.GroupVersionKind().GroupKind() != kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind).GroupKind() {
			continue
		}
		var ks kustomizev1.Kustomization
		if runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &ks) == nil {
			out = append(out, &ks)
		}
	}
	return out
}

// KeysIn returns the names of the Kustomizations among entries of an inventory.
func KeysIn(entries []inventory.Entry) []client.ObjectKey {
	var out []client.ObjectKey
	for _, e := range entries {
		if e.ID.GroupKind.Kind == kustomizev1.KustomizationKind && e.ID.GroupKind.Group == kustomizev1.GroupVersion.Group {
			out = append(out, client.ObjectKey{Namespace: e.ID.Namespace, Name: e.ID.Name})
		}
	}
	return out
}

// WantsOf returns what a Kustomization wants whose build holds objects, by the names that entries have for them.
func WantsOf(entries []inventory.Entry, objects []*unstructured.Unstructured) Wants {
	isRule := func(obj *unstructured.Unstructured) bool {
		stage := inventory.StageOf(obj.GroupVersionKind().GroupKind())
		return stage == inventory.Overrides || stage == inventory.Policies
	}
	out := Wants{Entries: entries, Children: ChildrenIn(objects)}
	for _, obj := range objects {
		if isRule(obj) {
			out.Rules = append(out.Rules, obj)
		}
	}
	return out
}
