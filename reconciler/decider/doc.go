// Package decider decides where bindings run, for every loop that places them.
//
// In go bindings and clusters, as the cache of the control plane has them, and what was
// decided before; out come decisions, with what they take of clusters reserved until it shows
// in what these report. Decider knows what was reserved for whom, where the peers of a binding
// are, and which bindings could not be placed: those wait in Unschedulable until a cluster has
// more available, or a peer moves. The package writes nothing: whoever asked does, or withdraws.
package decider
