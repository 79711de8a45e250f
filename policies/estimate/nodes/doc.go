// Package nodes says how many replicas, or sets of components, still fit on the
// single nodes of a cluster, and how many wait there for a node in vain.
//
// In go the nodes, pods and quotas of a cluster, one change after the other, and
// what is asked for; out comes a count that kube-scheduler would agree with, as
// far as resources, node selectors, node affinity, taints and quotas go. An
// Index is kept by changes, so that a question costs one walk over the nodes and
// none over the pods; it keeps no pod but those that wait. Plugins bound the
// count: node resources and quotas are built in, others can be added for the
// whole cluster (as for topology spread) or node by node (as for anti-affinity).
// The package asks no cluster and reads no clock. Several goroutines may ask an
// Index at once, while nobody changes it.
package nodes
