// Package taintpolicy taints Clusters as ClusterTaintPolicies say.
//
// In go Clusters and policies; out come the taints of Clusters, in one write for all
// that changed, and an Event on the Cluster: TaintClusterSucceed with what was added
// and removed, or TaintClusterFailed. A Cluster is looked at when its conditions
// change, or what policies find it by, and when a policy does. A taint that somebody
// else puts on or takes off is left alone until then, and no taint goes because its
// policy does. The loop evicts nothing, and writes no other field.
package taintpolicy
