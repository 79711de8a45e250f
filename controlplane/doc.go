// Package controlplane is the Kubernetes-compatible server that Flotilla brings
// along, put together: store, certificates, API server, housekeeping, and the
// folder that keeps them.
//
// In go a folder, addresses and the definitions of kinds; out come a running
// server, a kubeconfig for its administrator, and a connection with all rights
// for the loops, which run while the server does and are stopped before it. The
// package knows no loop.
package controlplane
