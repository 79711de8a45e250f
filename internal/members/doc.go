// Package members holds the connections to member clusters: for each one its
// own client, its own limit on requests in flight and its own watches, so that
// a member that is slow, gone or hostile delays nobody but itself.
//
// In go a cluster's name, identity and credentials; out come verbs on its
// objects and what is seen of them. How requests travel, and within which bounds,
// is package transport's; what is kept of objects and how it is kept up to date,
// package informer's.
//
// Nothing is written to a member before it has proved to be the cluster that
// was registered, and to be no other hub's; its claim aside. The package never reads or writes an object of the hub, and
// never starts a program or reads a file that credentials name.
package members
