package remark

import (
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Hanging returns that something which left a Kustomization is kept on the control plane, and false where nothing is.
// Namespaces report that themselves.
func Hanging(ks *kustomizev1.Kustomization) (Remark, bool) {
	found, _ := inventory.TerminatingIn(ks.Status)
	found = slices.DeleteFunc(found, func(t inventory.Terminating) bool { return t.Keeps == "" || t.ID.GroupKind.Kind == "Namespace" })
	if len(found) == 0 {
		return Remark{}, false
	}
	first := inventory.Describe(found[0].ID)
	if found[0].Nameless {
		first = found[0].ID.GroupKind.Kind
	}
	what := "object that left it is"
	if len(found) > 1 {
		what = "objects that left it are"
	}
	return Remark{
		Passes:  true,
		Message: fmt.Sprintf("%d %s still being deleted on the control plane: %s, %s", len(found), what, first, found[0].Keeps),
		Next:    "have whoever set what keeps it end its work there, or take it off: then it goes by itself",
	}, true
}
