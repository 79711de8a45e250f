// Package bindings is how the loops read and write bindings of both scopes.
//
// In go the cache of the hub and a binding as it should be; out come bindings
// by name or by index, and the smallest patch from what a binding, or one of its
// Works, is to what it should be. Every patch that changes the spec of a binding holds only for the generation
// it was made for, so that writers of status never disturb it and writers of
// the spec never overwrite each other. The package decides nothing.
package bindings
