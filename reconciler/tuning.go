package reconciler

import "time"

// Tuning says how often clusters are looked at, and how much is done side by side. What
// is zero is left to the loops.
type Tuning struct {
	// Period is how often a cluster's health is asked for.
	Period time.Duration
	// FailureThreshold and SuccessThreshold are how long a cluster must fail, or be
	// well, before that counts.
	FailureThreshold, SuccessThreshold time.Duration
	// NoModels leaves the nodes of clusters uncounted.
	NoModels bool
	// Workers are how many of each are worked on at the same time.
	Workers Workers
}

// Workers are numbers of goroutines.
type Workers struct {
	// Works are those of one cluster, Dependents the bindings whose dependencies are
	// looked for.
	Clusters, Works, Bindings, Namespaces, Templates, Dependents int
}
