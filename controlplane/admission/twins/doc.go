// Package twins prevents one cluster from being registered under two names, also by
// requests at the same moment.
//
// In goes a request that creates, changes or deletes a Cluster; out comes a refusal that
// names the other Cluster, or nothing. The package stores a Lease named by the cluster's
// permanent id, held while the Cluster is created. It does not decide who may register.
package twins
