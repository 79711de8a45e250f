package remark

import (
	"fmt"
	"slices"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/flotilla-io/flotilla/policies/cascade"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// settling is how long the control plane may take for its own work before that is reported.
const settling = 10 * time.Second

// Hanging returns that something which left a Kustomization is kept on the control plane, and false where nothing is.
// Namespaces report that themselves. What only the control plane keeps, until it has ended its own work, is left out for a while.
func Hanging(ks *kustomizev1.Kustomization, now time.Time) (Remark, bool) {
	found, _ := inventory.TerminatingIn(ks.Status)
	var of, own []inventory.Terminating
	for _, t := range found {
		if t.Ahead || t.Keeps == "" || t.ID.GroupKind.Kind == "Namespace" {
			continue
		}
		if finalizers := cascade.Blocking(t.Keeps); len(finalizers) > 0 {
			t.Keeps = cascade.BlockedBy(slices.DeleteFunc(finalizers, isOwn))
		}
		if t.Keeps == "" {
			own = append(own, t)
			continue
		}
		of = append(of, t)
	}
	next := "have whoever set what keeps it end its work there, or take it off: then it goes by itself"
	if len(of) == 0 {
		next = "nothing: it goes by itself once the control plane has ended its work there"
	}
	if latest := ks.Status.History.Latest(); latest != nil && now.Sub(latest.FirstReconciled.Time) >= settling {
		of = append(of, own...)
	}
	if len(of) == 0 {
		return Remark{}, false
	}
	first := inventory.Describe(of[0].ID)
	if of[0].Nameless {
		first = of[0].ID.GroupKind.Kind
	}
	what := "object that left it is"
	if len(of) > 1 {
		what = "objects that left it are"
	}
	return Remark{
		Passes:  true,
		Message: strings.TrimSuffix(fmt.Sprintf("%d %s still being deleted on the control plane: %s, %s", len(of), what, first, of[0].Keeps), ", "),
		Next:    next,
	}, true
}

// isOwn reports whether a finalizer is one of the control plane, which takes it off by itself.
func isOwn(finalizer string) bool {
	domain, _, _ := strings.Cut(finalizer, "/")
	return domain == "karmada.io" || strings.HasSuffix(domain, ".flotilla.io") || finalizer == kustomizev1.KustomizationFinalizer
}
