// Package estimator is the accurate estimator of one member, as a server of its own: it
// watches the member's nodes, pods and quotas, and serves Karmada's gRPC API.
//
// In go a client of the member, a listener and its credentials; out come answers to requests
// that name the member. The package writes nothing to clusters and does no estimate itself:
// policies/estimate/nodes does.
package estimator
