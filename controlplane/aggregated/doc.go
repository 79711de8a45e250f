// Package aggregated serves the kind Cluster in process: what a custom resource
// would be, had Cluster no sub-resource that is a connection.
//
// In goes a way to store objects and the rules that a Cluster must keep to; out
// comes an API group for a server chain, with `clusters` and `clusters/status`.
// The package decides nothing about a Cluster: defaults and validity are the
// rules', what it shows as a table is told apart here.
package aggregated
