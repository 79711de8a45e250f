// Package twins keeps one cluster from being registered under two names, also by
// those who ask in the same moment.
//
// In goes a request that makes, changes or ends a Cluster; out comes a refusal that
// names the other one, or nothing. What it stores is a Lease by the cluster's
// permanent id, held while the Cluster is made. It says nothing of who may register.
package twins
