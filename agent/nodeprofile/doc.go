// Package nodeprofile reports to the hub what the nodes of a member have free, and which pods wait for one.
//
// In go a client of the hub, what draws the texts, and word that something has changed; out
// comes a ConfigMap in the namespace of the cluster's Works, written where a text is
// another one, and not more often than each ten seconds. It knows nothing of what the texts
// say, asks nothing of the member, and tries nothing while the hub is away.
package nodeprofile
