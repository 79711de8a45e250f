// Package lineage shows where an object comes from and where it goes: a Trace
// leads from the commit to the members, a Node is a tree of what hangs below an
// object.
//
// In go values that a command has read; out come texts, and fields for scripts.
// It reads nothing and invents nothing: what is not known says why.
package lineage
