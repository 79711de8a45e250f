// Package workfinalizer puts the execution loop's finalizer on Works, and ends Works: those
// that are being deleted, and those whose binding is.
//
// In go Works whose objects the member was asked to remove; out goes one write for each.
// A Work whose binding is being deleted is treated as being deleted itself: to delete it
// first would be one more write for each Work. Where no execution loop ends it so, the
// binding loop deletes it after a while. The package never talks to a member.
package workfinalizer
