// Package estimator is the accurate estimator of one member, as a server of its own: it
// watches the member's nodes, pods and quotas, and answers Karmada's gRPC.
//
// In go a client of the member, a listener and what it is secured with; out come answers to
// whoever asks in the name of that member. It writes nothing, anywhere, and counts nothing
// itself: policies/estimate/nodes does.
package estimator
