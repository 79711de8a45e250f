// Package aggregated serves kinds in process, with their Go types: Cluster, because it has
// a sub-resource that is a connection, and Work, ResourceBinding and
// ClusterResourceBinding, because they are written most often and a custom resource costs
// up to twice as much per write. On the wire and in the store they look like custom
// resources.
//
// In go a way to store objects, their definitions, the time and new ids; out
// come API groups for a server chain. The package decides nothing about an
// object: defaults and validity are those of policies/validate and of the
// definitions' schemas.
package aggregated
