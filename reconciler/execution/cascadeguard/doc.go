// Package cascadeguard keeps a deletion in a member from deleting objects of others along
// with it: a namespace is deleted with all that is in it, and the definition
// of a kind with all objects of the kind, whoever created them.
//
// In goes what a Work is about to delete; out comes a Refusal while that contains an object whose
// Work is not being deleted as well, or that has none. It reads the member, for namespaces and
// definitions alone, and Works from the hub's cache. For a StatefulSet it first separates the volume claims
// that would be deleted with it. For a Work that is being
// deleted and is blocked, for any reason, it also returns the status that reports it,
// by the condition DeletionBlocked.
package cascadeguard
