// Package selfregistration keeps a cluster's entry on the hub: its Cluster, and the credentials
// that it hands out.
//
// In go the cluster's identity and what it reports about itself; out come a Cluster in pull
// mode and, if asked for, accounts in the member with their tokens on the hub. A
// name that is another cluster's, a cluster that has another name, and a hub of an
// unfit version are refused with one line that says what to do. The package makes
// no roles on the hub, and never touches an entry that is not its own.
package selfregistration
