package rollup

import (
	"cmp"
	"slices"
)

// Kinds of causes, by how much they ask of people: those that ask most are reported first.
const (
	// decision: somebody has to decide what is meant.
	decision = iota
	// fault: the commit has to be corrected.
	fault
	// unmet: something is missing that another commit, or another Kustomization, may bring.
	unmet
	// running: it was applied and is not healthy, or the cause is not known.
	running
	// passing: it is retried, and may recover by itself.
	passing
	// following: it recovers once what it waits for does.
	following
)

// concerns maps the reasons of Kustomizations to kinds of causes; all other reasons are faults.
var concerns = map[string]int{
	"PruneBlocked": decision, "SharedObject": decision, "DuplicateObject": decision,
	"NamespaceNotFound": unmet, "ServiceAccountNotFound": unmet, "UnknownKind": unmet,
	"": running, "HealthCheckFailed": running, "ReconciliationSucceeded": running,
	"ReconciliationFailed": passing, "Progressing": passing, "ProgressingWithRetry": passing, "PruneFailed": passing, "ArtifactFailed": passing, "DeletedAgain": passing,
	"DependencyNotReady": following,
}

// concern returns the kind of cause for a share's state.
func (s Share) concern() int {
	if s.Retired {
		return following
	}
	if kind, known := concerns[s.Reason]; known {
		return kind
	}
	return fault
}

// byConcern orders shares by what people want to read first: by state, causes before what follows from them, what
// the commit changes before the rest, and then by what asks most of people.
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
