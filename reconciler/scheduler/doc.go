// Package scheduler places bindings again when something changes after their
// first placement: clusters join, leave, or change their labels, taints or
// APIs; somebody else edits a binding or makes one without a placement.
//
// It reads bindings and clusters and writes spec.clusters of bindings, with the
// applied placement and the record of the decision in the same patch. The
// decision itself is placement.Decide, which the template loop calls as well.
// Bindings that name another scheduler, or whose scheduling is suspended, are
// left alone. The package never writes a status: reasons it leaves in the
// record are those of the condition Scheduled.
package scheduler
