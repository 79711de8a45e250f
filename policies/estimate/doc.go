// Package estimate says how many replicas, or sets of components, still fit on
// a cluster.
//
// In go what a cluster reports about itself, what was reserved for others there,
// and what one replica asks for; out comes a count. It is an upper bound from
// sums over the whole cluster, and where the cluster counts its nodes by size,
// from what single nodes have free at least; how to count them is here, too. It asks no cluster, and knows
// nothing of node labels, taints of nodes, volumes or quotas.
package estimate
