// Package nodeprofile reports to the hub what the nodes of a member have free, and which pods wait for one.
//
// In go a client of the hub, a function that makes the texts, and calls when something has
// changed; out comes a ConfigMap in the namespace of the cluster's Works, written where a
// text differs, and at most every ten seconds. The package does not interpret the texts,
// asks nothing of the member, and tries nothing while the hub is away.
package nodeprofile
