// Package endings deletes what a Kustomization applied that is being deleted itself.
//
// In go the Kustomization, what others of its source want, and what people let go; out comes whether it may go now.
// It deletes, as whoever applied it, what nobody wants; never what others want, what it was to hand over and nobody
// wants after all, unless people let that go, or what is made anew with the next Kustomization of its name.
package endings
