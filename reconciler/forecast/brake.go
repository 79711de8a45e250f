package forecast

import (
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Brake returns why the control plane would refuse a removal, by its own brake, without what it alone sees within
// namespaces; empty where it would not. It is for files about which no Kustomization is named.
func Brake(of func(namespace, name string) *kustomizev1.Kustomization) func(comparison.Removal) string {
	return func(r comparison.Removal) string {
		namespace, name, _ := strings.Cut(r.Kustomization, "/")
		annotation := ""
		if ks := of(namespace, name); ks != nil {
			if !ks.Spec.Prune {
				return ""
			}
			annotation = ks.Annotations[inventory.AllowPruneAnnotation]
		}
		gone := map[comparison.Object]bool{}
		for _, obj := range r.Gone {
			gone[obj] = true
		}
		var losses []inventory.Loss
		var stays, all []inventory.Entry
		for _, obj := range r.Owned {
			entry := inventory.Entry{ID: idOf(obj)}
			all = append(all, entry)
			if gone[obj] {
				losses = append(losses, inventory.Loss{ID: entry.ID, Precious: inventory.PreciousKind(entry.ID.GroupKind) != ""})
			} else {
				stays = append(stays, entry)
			}
		}
		inventory.FlagLast(losses, stays)
		if err := inventory.DefaultBrake().Check(len(all), losses, inventory.AllowanceOf(annotation, "", unnamed).Among(all), unnamed); err != nil {
			return Revision{}.words(err.Error())
		}
		return ""
	}
}

func idOf(obj comparison.Object) inventory.ID {
	return inventory.ID{GroupKind: schema.GroupKind{Group: schema.FromAPIVersionAndKind(obj.APIVersion, obj.Kind).Group, Kind: obj.Kind}, Namespace: obj.Namespace, Name: obj.Name}
}
