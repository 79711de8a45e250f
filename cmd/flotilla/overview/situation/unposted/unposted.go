// Package unposted counts the commit statuses that were not posted to forges.
//
// In go CommitStatuses; out comes, for each Provider and reason, how many it could not post. It reads nothing and writes
// nothing.
package unposted

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// Cause is a Provider, and why it cannot post.
type Cause struct{ Namespace, Provider, Reason, Message string }

// Statuses are those that could not be posted. The zero value is empty.
type Statuses struct {
	by     map[Cause]int
	causes []Cause // in the order of their first CommitStatus
}

// Add adds a CommitStatus, if it could not be posted.
func (s *Statuses) Add(cs *gitopsv1alpha1.CommitStatus) {
	synced := apimeta.FindStatusCondition(cs.Status.Conditions, gitopsv1alpha1.CommitStatusSynced)
	if synced == nil || synced.Status != metav1.ConditionFalse || cs.DeletionTimestamp != nil {
		return
	}
	cause := Cause{cs.Namespace, cs.Spec.ProviderRef.Name, synced.Reason, synced.Message}
	if s.by == nil {
		s.by = map[Cause]int{}
	}
	if s.by[cause]++; s.by[cause] == 1 {
		s.causes = append(s.causes, cause)
	}
}

// Causes calls yield with each Provider and reason, and how many statuses that keeps back.
func (s *Statuses) Causes(yield func(cause Cause, statuses int) bool) {
	for _, cause := range s.causes {
		if !yield(cause, s.by[cause]) {
			return
		}
	}
}
