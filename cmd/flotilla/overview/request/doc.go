// Package request has the commands that ask loops for something: reconcile, suspend
// and resume, with the names and the meaning of Flux's.
//
// In go the name of a source or a Kustomization; out come one patch, of the
// annotation that asks or of spec.suspend, and progress until the loop has answered.
// It never writes anything else.
package request
