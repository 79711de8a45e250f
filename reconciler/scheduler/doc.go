// Package scheduler decides where bindings run, and places them again when
// something changes after their first placement: clusters join, leave, or change
// their labels, taints, regions or APIs; somebody else edits a binding or makes
// one without a placement.
//
// In go bindings and clusters; out come spec.clusters of bindings, as a decider decides, with
// the applied placement and the record of the decision in the same patch. What could not be placed waits: for
// capacity, peers, a quota's edit, a cluster, or for a while. Bindings that name
// another scheduler are left alone, and so are those whose scheduling is
// suspended or that no policy carries, except that they let go of clusters that
// leave. The package never writes a status: reasons it leaves in the record are
// those of the condition Scheduled. Events: ScheduleBindingSucceed and
// ScheduleBindingFailed on templates.
package scheduler
