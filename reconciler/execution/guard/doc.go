// Package guard keeps what others have in a member from going with what a Work
// deletes there: with a namespace goes all that is in it, and with the definition
// of a kind all objects of the kind, whoever put them there.
//
// In goes what is to be deleted; out comes a Refusal while it contains what is not of
// a Work of this hub that goes, too. It asks the member, for namespaces and
// definitions alone, and reads Works from the hub's cache. For a Work that is being
// deleted and cannot go, for whatever reason, it also makes the status that says so,
// by the condition DeletionBlocked. It writes and deletes nothing.
package guard
