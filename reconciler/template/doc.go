// Package template propagates resource templates by policies: it creates the
// binding of each template that a policy selects, with its first placement in
// the same write, and keeps it up to date.
//
// It reads templates, propagation policies, overrides and PriorityClasses (by
// name only), bindings and clusters. On templates it writes the claim, which is
// metadata, and an annotation on those that wait under a Lazy policy. Of
// bindings it owns everything but the status; spec.clusters it writes together
// with what changed the placement, and leaves to the scheduler otherwise. On
// policies it writes the status and removes the finalizer.
//
// A new template costs at most two writes, the claim and the binding, which are
// sent side by side; an edit costs one. Works need not wait for the write of an
// edit that changes nothing of what is decided: see PlacementUnchanged. Conditions: Ready
// on policies, with the reasons Matched, UnknownAPI, WaitingForOverrides,
// UnknownPriorityClass and InvalidSelector; the counts beside it come from the
// statistics, and are written together, a little later. Events: ApplyPolicySucceed,
// ApplyPolicyFailed, PreemptPolicySucceed, PreemptPolicyFailed,
// GetReplicasFailed, GetComponentsFailed, ScheduleBindingSucceed on templates;
// ScheduleBindingFailed and EvictWorkloadFromClusterFailed on bindings, too. It
// never touches a Work, and deletes nothing but the binding of a template that a
// complete watch saw gone.
package template
