// Package workfinalizer adds the execution loop's finalizer to Works, and ends Works: those
// that are being deleted, and those whose binding is, or has left their cluster.
//
// In go Works whose objects are removed from the member; out goes one write for each.
// A Work whose binding is being deleted, or says that it has left the cluster, is treated as being
// deleted itself: to delete it first would be one more write for each Work. If no execution loop ends it, the
// binding loop deletes it after a while. The package never calls a member.
package workfinalizer
