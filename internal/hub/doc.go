// Package hub connects the loops to the control plane: one manager with one
// cache, without a client-side rate limit.
//
// In go a rest config and a scheme; out comes a controller-runtime manager. The
// package runs no loop itself and never connects to a member cluster.
package hub
