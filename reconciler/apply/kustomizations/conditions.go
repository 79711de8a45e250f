package kustomizations

import (
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Conditions sets conditions, and moves their transition time only when their
// status changes.
type Conditions struct {
	List       *[]metav1.Condition
	Generation int64
	Now        metav1.Time
}

// Set sets a condition.
func (c Conditions) Set(kind string, status metav1.ConditionStatus, reason, message string) {
	next := metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: c.Generation, LastTransitionTime: c.Now}
	if have := apimeta.FindStatusCondition(*c.List, kind); have != nil && have.Status == status {
		next.LastTransitionTime = have.LastTransitionTime
	}
	apimeta.SetStatusCondition(c.List, next)
}

// Remove removes a condition.
func (c Conditions) Remove(kind string) { apimeta.RemoveStatusCondition(c.List, kind) }

// Failed sets Ready, Reconciling and Stalled after a run that ended with an outcome. Passes says that it is part of how a revision is
// applied: Ready is Unknown then.
func (c Conditions) Failed(outcome *loop.Error, message string, passes bool) {
	switch outcome.Class {
	case loop.ClassStalled:
		c.Remove(meta.ReconcilingCondition)
		c.Set(meta.StalledCondition, metav1.ConditionTrue, outcome.Reason, message)
	case loop.ClassRetry, loop.ClassWaiting:
		c.Remove(meta.StalledCondition)
		c.Set(meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingWithRetryReason, message)
	}
	ready := metav1.ConditionFalse
	if passes {
		ready = metav1.ConditionUnknown
	}
	c.Set(meta.ReadyCondition, ready, outcome.Reason, message)
}

// Applied reports whether the outcome of a run means that all of a revision is applied, healthy or not.
func Applied(outcome *loop.Error) bool {
	return outcome == nil || outcome.Reason == meta.HealthCheckFailedReason || outcome.Reason == inventory.ReasonDeletedAgain
}
