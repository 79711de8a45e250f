// Package scheduler decides where bindings run, and places them again when
// something changes after their first placement: clusters join, leave, or change
// their labels, taints, regions or APIs; somebody else edits a binding or makes
// one without a placement.
//
// In go bindings and clusters; out come spec.clusters of bindings, as a decider decides, with
// the applied placement and the record of the decision in the same patch. What could not be placed waits: for
// capacity, peers, a quota's edit, a cluster, or for some time. Bindings that name
// another scheduler are left alone, and so are those whose scheduling is
// suspended or that no policy carries, except that they are removed from clusters that
// leave. What is evicted from failed clusters waits for its turn (rateLimiter). Turns are slower while many
// of those that were moved do not become healthy, which policies/failover decides. The package writes no
// status of a binding: the reasons in the record become those of the condition Scheduled.
// Events: ScheduleBindingSucceed on templates;
// ScheduleBindingFailed and EvictWorkloadFromClusterFailed on bindings, too; EvictionSlowed on clusters,
// which is also a condition there while templates wait to leave them.
package scheduler
