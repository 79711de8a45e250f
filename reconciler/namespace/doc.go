// Package namespace makes the hub's namespaces in every member.
//
// It reads Namespaces, Clusters and ClusterOverridePolicies, and writes one Work
// per namespace and cluster, owned by the Namespace: the garbage collector takes
// them away with it. Namespaces of the control plane, the namespace default,
// those that are skipped by flag or that carry
// namespace.karmada.io/skip-auto-propagation stay on the hub. It deletes no
// Work but one that stands under a former name, and never writes to a member. A
// Work that was to remove a namespace which has come back learns that it stays, and is
// ended for the next one once the execution loop has let go of it.
package namespace
