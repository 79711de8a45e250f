// Package outlook predicts what becomes of what the fleet runs in a cluster when
// the cluster leaves.
//
// In go a cluster, its Works, and access to the member where there is any; out
// come the names of what will be removed and of what will stay, by the rules of
// the loops that remove it. It writes nothing.
package outlook
