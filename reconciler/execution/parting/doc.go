// Package parting ends Works: those that are being deleted, and those whose binding is.
//
// In go Works whose objects the member was asked to remove; out goes one write for each.
// Until then the loop's finalizer keeps them, which is put on here, too.
// A Work whose binding is being deleted need not be deleted first, which would be a write
// more: the binding says already that it is to go. It is taken for one that is being
// deleted. Where nobody ends it so, the binding loop deletes it after a while. The package
// never talks to a member.
package parting
