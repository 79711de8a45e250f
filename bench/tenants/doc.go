// Package tenants has two tenants on one control plane: one that commits, and one
// that attacks.
//
// In go a connection and a Git server; out come how long each commit of the first
// took until it was applied. Each has the rights of the ClusterRole edit in a
// namespace of its own, and no more. The package judges nothing.
package tenants
