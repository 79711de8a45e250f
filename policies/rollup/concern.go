package rollup

import (
	"cmp"
	"slices"
)

// Kinds of causes, by how much they ask of people: the first is reported first.
const (
	// decision: somebody has to say what is meant.
	decision = iota
	// fault: something has to be mended in the commit.
	fault
	// unmet: something is missing that another commit, or another that applies this one, may bring.
	unmet
	// running: it is applied, and is not well where it runs; or nobody knows why.
	running
	// passing: it is tried again, and may heal by itself.
	passing
	// following: it is well once what it waits for is.
	following
)

// concerns says what kind of cause is behind a reason of those that apply a source; every other one is a fault.
var concerns = map[string]int{
	"PruneBlocked": decision, "SharedObject": decision, "DuplicateObject": decision,
	"NamespaceNotFound": unmet, "ServiceAccountNotFound": unmet, "UnknownKind": unmet,
	"": running, "HealthCheckFailed": running, "ReconciliationSucceeded": running,
	"ReconciliationFailed": passing, "Progressing": passing, "ProgressingWithRetry": passing, "PruneFailed": passing, "ArtifactFailed": passing, "DeletedAgain": passing,
	"DependencyNotReady": following,
}

// concern is the kind of what is behind a share's state.
func (s Share) concern() int {
	if s.Retired {
		return following
	}
	if kind, known := concerns[s.Reason]; known {
		return kind
	}
	return fault
}

// byConcern puts first what people want to read of first: what failed, what does not follow from another, what the
// commit changes, and of that what asks most of them.
func byConcern(a, b Share) int {
	weight := func(s Share) int {
		return slices.Index([]string{StateFailure, StatePending, StateSuccess}, s.state())
	}
	return cmp.Or(cmp.Compare(weight(a), weight(b)), btoi(a.concern() == following)-btoi(b.concern() == following),
		btoi(a.Unchanged)-btoi(b.Unchanged), cmp.Compare(a.concern(), b.concern()), cmp.Compare(a.Name, b.Name))
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
