// Package execution applies Works to member clusters and reports the results
// back.
//
// It reads Works and Clusters of the hub, and the members' managed objects through internal/members. It
// writes the members' objects, by server-side apply, and the whole status of the Works: the conditions
// Applied and Dispatching, the reflected status and health of each manifest's object, and the hashes by
// which a restart knows that nothing has changed. It removes the finalizer from Works that are being
// deleted, once their objects are gone from the member or need not be waited for; one whose removal was recalled is ended by who recalled it. It never touches a
// Work's spec.
//
// Every cluster has a worker with a queue of its own, so that a member that is slow
// or gone keeps only its own Works waiting. It starts when its Cluster appears and
// ends when that is gone. A worker reconciles a Work in phases, by pieces that know each
// other only where their fields say so: the work reader reads, the applier has the member
// apply what differs, the pruner removes what is no longer asked for, the lifetime keeps
// the Work until its objects are gone, the describer works out the status, and the reporter,
// last and alone, writes it.
//
// Where a Cluster says so, manifests are applied as the user who applied their templates,
// with that user's rights in the member, and never as anybody else.
//
// Reasons: Applied True/AppliedSuccessful, False/AppliedFailed, False/UnknownAccount, False/AccountForbidden; Dispatching
// True/Dispatching, False/SuspendDispatching.
package execution
