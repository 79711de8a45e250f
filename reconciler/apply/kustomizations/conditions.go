package kustomizations

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
