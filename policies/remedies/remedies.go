// Package remedies says what is to be done about a Cluster by all Remedies.
//
// In go the Remedies and one Cluster; out come the actions, sorted and each once. The
// package does nothing about a Cluster, and does not know what an action means.
package remedies

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	remedyv1alpha1 "github.com/flotilla-io/flotilla/api/remedy/v1alpha1"
)

// Actions returns what is to be done about the cluster; nil if nothing is.
func Actions(remedies []remedyv1alpha1.Remedy, cluster *clusterv1alpha1.Cluster) []string {
	var out []string
	for i := range remedies {
		spec := &remedies[i].Spec
		if !Concerns(&remedies[i], cluster.Name) || !applies(spec.DecisionMatches, cluster.Status.Conditions) {
			continue
		}
		for _, action := range spec.Actions {
			if action != "" { // says nothing; the kind allows it, as Karmada's does
				out = append(out, string(action))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Concerns reports whether the remedy is about the cluster of that name. One without
// an affinity is about all, and one that names none about none.
func Concerns(remedy *remedyv1alpha1.Remedy, cluster string) bool {
	affinity := remedy.Spec.ClusterAffinity
	return affinity == nil || slices.Contains(affinity.ClusterNames, cluster)
}

// applies reports whether one of the matches holds. Without any it does, always.
func applies(matches []remedyv1alpha1.DecisionMatch, conditions []metav1.Condition) bool {
	return len(matches) == 0 || slices.ContainsFunc(matches, func(m remedyv1alpha1.DecisionMatch) bool {
		return m.ClusterConditionMatch != nil && isMet(m.ClusterConditionMatch, conditions)
	})
}

// isMet reports whether the condition is as it is asked for. One that the cluster does
// not have is not.
func isMet(want *remedyv1alpha1.ClusterConditionRequirement, conditions []metav1.Condition) bool {
	is := meta.FindStatusCondition(conditions, want.ConditionType)
	if is == nil {
		return false
	}
	switch want.Operator {
	case remedyv1alpha1.ClusterConditionEqual:
		return string(is.Status) == want.ConditionStatus
	case remedyv1alpha1.ClusterConditionNotEqual:
		return string(is.Status) != want.ConditionStatus
	default:
		return false
	}
}
