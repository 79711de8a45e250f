// Package endings deletes what a Kustomization applied that is being deleted itself.
//
// In go the Kustomization, what others of its source want, and what people have allowed to be deleted; out comes
// whether its finalizer may be removed. It deletes, as the account that applied them, the objects that nobody wants.
// It never deletes what others want, nor what the next Kustomization of its name holds; and what others were to take
// over and did not, only if people have allowed that.
package endings
