// Package room tells whether a move is within what clusters have room for, however the placement divides replicas.
//
// In go candidates of which it was measured how much more fits there, and a division among them; out comes who may be given a whole
// copy, or what is too much for whom. It measures and divides nothing.
package room

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
)

// ForWhole returns the candidates that have room for a whole copy, of that many units, or run one already.
func ForWhole(candidates []framework.Candidate, units int64) []framework.Candidate {
	return slices.DeleteFunc(slices.Clone(candidates), func(c framework.Candidate) bool { return !c.Targeted && c.Capacity < units })
}

// Exceeded returns the error for the first of the targets that is given more than it has room for; nil where none is.
func Exceeded(chosen []framework.Candidate, targets []workv1alpha2.TargetCluster) error {
	for _, t := range targets {
		i := slices.IndexFunc(chosen, func(c framework.Candidate) bool { return c.Name == t.Name })
		if i < 0 {
			continue
		}
		if gain := int64(t.Replicas) - int64(chosen[i].Assigned); gain > 0 && gain > chosen[i].Capacity {
			return &framework.UnschedulableError{Message: fmt.Sprintf("no room for %d more replicas in %s: %d", gain, t.Name, chosen[i].Capacity)}
		}
	}
	return nil
}

// Held returns how many units an old copy still takes in a cluster that is returned to, by its eviction task: those are there to be had.
func Held(spec *workv1alpha2.ResourceBindingSpec, cluster string, returns map[string]bool) int64 {
	if !returns[cluster] {
		return 0
	}
	for i := range spec.GracefulEvictionTasks {
		if task := &spec.GracefulEvictionTasks[i]; task.FromCluster == cluster {
			return int64(ptr.Deref(task.Replicas, 0))
		}
	}
	return 0
}
