// Package join registers a cluster with the hub in push mode, and removes it
// again.
//
// In go clients for both sides and the address of the member; out come, in the
// member, a namespace, two service accounts with their tokens and the role by
// which the hub acts, and, on the hub, the Secrets with the tokens and the
// Cluster. Every step is reported as it is done. A cluster is identified by the
// UID of its kube-system namespace: the same cluster cannot be joined under two
// names, nor two clusters under one. The package prints nothing and keeps no
// credentials.
package join
