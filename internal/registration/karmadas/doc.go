// Package karmadas has clients that behave as karmadactl register and Karmada's
// agent do, for tests of a control plane that serves them.
//
// In go the address of a control plane, a bootstrap token and the name of a
// cluster; out come the requests of both, in order. They are written from what is
// known about the protocol, and share no code with Flotilla's own registration
// and agent.
package karmadas
