// Package lineage shows where an object comes from and where it goes: a Trace leads from the commit
// to the members, a Node is the tree of objects below an object.
//
// In go values that a command has read; out come texts, and fields for scripts. It reads nothing.
// For what is not known, the output contains the reason.
package lineage
