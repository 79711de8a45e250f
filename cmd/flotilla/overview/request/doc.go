// Package request has the commands that send requests to loops: reconcile, suspend and resume, with
// the names and the meaning of Flux's, and rebalance.
//
// In go the name of a source, a Kustomization or a template; out come one patch, of the annotation
// for requests or of spec.suspend, or one WorkloadRebalancer, and progress until the loop has
// answered. resume hub lifts the control plane's wait. The package writes nothing else.
package request
