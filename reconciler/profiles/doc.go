// Package profiles knows what the agents of clusters in pull mode report of their nodes, and of
// what waits for one.
//
// In go the hub's ConfigMaps of one name in the namespaces of clusters' Works, which are not
// trusted, Clusters, and what is to run; out comes how much of it fits and how
// old that is, and how much of it waits, or an error, which means that nothing is known. A profile is read when it
// changes, and once a second at most of each cluster, after a few at once; no cluster waits
// for another one, and readers never wait. It writes nothing, and decides nothing.
package profiles
