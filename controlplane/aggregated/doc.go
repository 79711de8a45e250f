// Package aggregated serves the kind Cluster in process: what a custom resource
// would be, had Cluster no sub-resource that is a connection.
//
// In go a way to store objects and the time; out comes an API group for a server
// chain, with `clusters` and `clusters/status`. The package decides nothing about
// a Cluster: its defaults and validity are those of policies/validate.
package aggregated
