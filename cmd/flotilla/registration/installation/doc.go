// Package installation puts the agent of a cluster in pull mode into that cluster,
// and takes it out again.
//
// In go a client of the member and the agent's way to the control plane; out come a
// namespace, an account with its rights, a Secret with the way, and a Deployment.
// It may be run again: what is there is brought up to date. The package asks the
// control plane nothing, and never shows what is in the Secret.
package installation
