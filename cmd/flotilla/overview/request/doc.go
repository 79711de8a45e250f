// Package request has the commands that ask loops for something: reconcile, suspend
// and resume, with the names and the meaning of Flux's, and rebalance.
//
// In go the name of a source, a Kustomization or a template; out come one patch, of the
// annotation that asks or of spec.suspend, or one WorkloadRebalancer, and progress until the
// loop has answered. It never writes anything else.
package request
