package situation

import (
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// hanging is the problem that something which left a Kustomization is kept on the control plane; the zero value is none.
// Namespaces report that themselves.
func hanging(ks *kustomizev1.Kustomization) Problem {
	found, _ := inventory.TerminatingIn(ks.Status)
	found = slices.DeleteFunc(found, func(t inventory.Terminating) bool { return t.Keeps == "" || t.ID.GroupKind.Kind == "Namespace" })
	if len(found) == 0 {
		return Problem{}
	}
	first := inventory.Describe(found[0].ID)
	if found[0].Nameless {
		first = found[0].ID.GroupKind.Kind
	}
	return Problem{
		State: Progressing, Kind: kustomizev1.KustomizationKind, Namespace: ks.Namespace, Name: ks.Name,
		Message: fmt.Sprintf("%d %s still being deleted on the control plane: %s, %s", len(found), plural(len(found), "object that left it is", "objects that left it are"), first, found[0].Keeps),
		Next:    "have whoever set what keeps it end its work there, or take it off: then it goes by itself",
	}
}
