// Package hint finds out which object of a namespace is meant by a name that none there has.
//
// In go a cache and a name; out comes the name that is nearly it. It looks into no other namespace, as what there is in those
// is not for everybody to know, and makes no request.
package hint

import (
	"context"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// most is how many objects are looked at.
const most = 1000

// longest is how long the name of an object can be.
const longest = 253

// Name returns the name of the object beside key that is most like key's; empty where none is near. Of is what refers to key:
// nothing is said of another namespace than its own. List says of which kind, and is filled: hub must read that from a
// cache. But are names that are not meant.
func Name(ctx context.Context, hub client.Reader, list client.ObjectList, of client.Object, key client.ObjectKey, but ...string) string {
	if key.Namespace == "" || key.Namespace != of.GetNamespace() {
		return "" // what there is in other namespaces is not for it to know
	}
	if len(key.Name) > longest || hub.List(ctx, list, client.InNamespace(key.Namespace), client.Limit(most), client.UnsafeDisableDeepCopy) != nil {
		return "" // which was a courtesy
	}
	var names []string
	err := apimeta.EachListItem(list, func(obj runtime.Object) error {
		if named, ok := obj.(client.Object); ok && !slices.Contains(but, named.GetName()) {
			names = append(names, named.GetName())
		}
		return nil
	})
	if err != nil {
		return ""
	}
	return propagation.Nearest(key.Name, names)
}

// Dependency is Name of a Kustomization that another one depends on. Neither that one is meant, nor what it depends on
// besides. It is empty for one of another namespace.
func Dependency(ctx context.Context, hub client.Reader, of *kustomizev1.Kustomization, key client.ObjectKey) string {
	but := []string{of.Name}
	for _, ref := range of.Spec.DependsOn {
		if ref.Namespace == "" || ref.Namespace == of.Namespace {
			but = append(but, ref.Name)
		}
	}
	return Name(ctx, hub, &kustomizev1.KustomizationList{}, of, key, but...)
}

// Source is Name of the source that a Kustomization applies. It is empty for one of another namespace, or of a kind that is not
// followed.
func Source(ctx context.Context, hub client.Reader, of *kustomizev1.Kustomization, source inventory.Source) string {
	kind, followed := origins.KindOf(source.Kind)
	if !followed {
		return ""
	}
	return Name(ctx, hub, kind.List(), of, source.ObjectKey)
}
