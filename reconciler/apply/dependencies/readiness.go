package dependencies

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// Readiness is the part of a Kustomization for which others may wait. Values can be compared with ==.
type Readiness struct {
	generation, observed int64
	status               metav1.ConditionStatus
	reason, revision     string
}

// readinessOf returns the readiness of a Kustomization.
func readinessOf(ks *kustomizev1.Kustomization) Readiness {
	out := Readiness{generation: ks.Generation, observed: ks.Status.ObservedGeneration, revision: ks.Status.LastAppliedRevision}
	if c := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition); c != nil {
		out.status, out.reason = c.Status, c.Reason
	}
	if out.reason == siblings.ReasonHandingOver { // enough for dependents of the same source: see Checker.unready
		out.revision = ks.Status.LastAttemptedRevision
	}
	return out
}

// MovedOn lets pass what those may have waited for that exchange objects with others.
func MovedOn() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, okBefore := e.ObjectOld.(*kustomizev1.Kustomization)
		after, okAfter := e.ObjectNew.(*kustomizev1.Kustomization)
		return okBefore && okAfter && (readinessOf(before) != readinessOf(after) || before.Status.LastAttemptedRevision != after.Status.LastAttemptedRevision ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() || switched(before) != switched(after))
	}}
}

// switched is how far the switch of a Kustomization is; empty for none.
func switched(ks *kustomizev1.Kustomization) string {
	if c := apimeta.FindStatusCondition(ks.Status.Conditions, revisiongate.Condition); c != nil {
		return c.Reason
	}
	return ""
}

// Changed lets pass what dependents may have waited for, and what is gone.
func Changed() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, okBefore := e.ObjectOld.(*kustomizev1.Kustomization)
			after, okAfter := e.ObjectNew.(*kustomizev1.Kustomization)
			return okBefore && okAfter && readinessOf(before) != readinessOf(after)
		},
	}
}
