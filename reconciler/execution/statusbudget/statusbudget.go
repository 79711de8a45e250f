// Package statusbudget says how much of a Work is free for the statuses of its objects.
//
// In goes a Work; out comes a number of bytes. It reads and writes nothing.
package statusbudget

import (
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// Bounds of a Work in bytes as it is stored. etcd takes 1.5 MiB unless configured
// otherwise; the hub would refuse to store a larger Work, with any status.
const (
	mostWork = 1<<20 + 448<<10
	// mostStatuses bounds the statuses of all objects of a Work together, and leastStatuses
	// is what they may have in any case.
	mostStatuses  = 768 << 10
	leastStatuses = 32 << 10
)

// OfStatuses returns how many bytes the statuses of a Work's objects may have together.
func OfStatuses(work *workv1alpha1.Work) int {
	free := mostWork
	for i := range work.Spec.Workload.Manifests {
		free -= rollup.Stored(work.Spec.Workload.Manifests[i].Raw)
	}
	return max(leastStatuses, min(free, mostStatuses))
}
