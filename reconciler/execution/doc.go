// Package execution carries Works to member clusters and reports back what came
// of them.
//
// It reads Works and Clusters of the hub, and the members' managed objects
// through internal/members. It writes the members' objects, by server-side
// apply, and the whole status of the Works: the conditions Applied and
// Dispatching, the reflected status and health of each manifest's object, and
// the hashes that let a restart know that nothing has changed. It takes the
// finalizer off Works whose objects the member was told to remove. It never
// touches a Work's spec.
//
// Every cluster has a lane: a queue and workers of its own, so that a member
// that is slow or gone keeps only its own Works waiting. A lane opens when its
// Cluster appears and closes when it is gone.
//
// Where a Cluster says so, manifests are applied as who applied their templates,
// with the rights that the member gives him, and never as anybody else.
//
// Reasons: Applied True/AppliedSuccessful, False/AppliedFailed,
// False/UnknownAccount, False/AccountForbidden; Dispatching True/Dispatching,
// False/SuspendDispatching.
package execution
