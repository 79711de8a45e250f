package framework

import (
	"cmp"
	"slices"
)

// Candidate is a cluster that passed every filter.
type Candidate struct {
	*Cluster
	// Score is the sum over all plugins.
	Score int64
	// Capacity is how many more replicas fit, or sets of components.
	Capacity int64
	// Assigned is how many of them the binding has there today; never negative.
	Assigned int32
	// Targeted is whether the binding is placed there today.
	Targeted bool
	// Home is whether the binding is brought back there.
	Home bool
	// Tier is 0 for clusters of the affinity in force and i+1 for those that
	// only its i-th overflow affinity means.
	Tier int
}

// Available is how many replicas the cluster could run in all.
func (c *Candidate) Available() int64 { return c.Capacity + int64(c.Assigned) }

// Sort orders candidates from the most to the least preferred: lower tier,
// higher score, more available replicas, name.
func Sort(cs []Candidate) {
	slices.SortFunc(cs, func(a, b Candidate) int {
		return cmp.Or(
			cmp.Compare(a.Tier, b.Tier),
			cmp.Compare(b.Score, a.Score),
			cmp.Compare(b.Available(), a.Available()),
			cmp.Compare(a.Name, b.Name),
		)
	})
}

// UnschedulableError says that clusters fit but lack capacity; a later try may
// succeed.
type UnschedulableError struct {
	Message string
	// Spread says that it is a spread constraint for which there is too little: clients
	// of Karmada's read the reason SchedulerError then.
	Spread bool
}

func (e *UnschedulableError) Error() string { return e.Message }

// Cause is the same whatever the numbers of the message.
func (e *UnschedulableError) Cause() string { return CauseCapacity }

// CauseCapacity is the cause of all errors that say that capacity lacks.
const CauseCapacity = "room"
