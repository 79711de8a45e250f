// Package finalization decides whether the finalizer of a deleted Kustomization may be removed, and deletes what it applied.
//
// In go the Kustomization, what others of its source want, and what people have allowed to be deleted; out comes
// whether all is gone. It deletes, as the account that applied them, the objects that nobody wants.
// Policies and overrides go last: once templates that go as well are gone, and with what others write whom the commit concerns.
// It never deletes what others want, nor what the next Kustomization of its name holds; and what others were to take
// over and did not, only if people have allowed that.
package finalization
