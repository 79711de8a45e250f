// Package karmadas has clients that speak as karmadactl register and Karmada's agent do,
// for tests of a control plane that serves them.
//
// In go the address of a control plane, a bootstrap token and the name of a cluster; out
// come the requests of both, in order. They are written from what is known of the
// protocol, and share nothing with Flotilla's own registration and agent.
package karmadas
