// Package members holds the connections to member clusters: for each one its
// own client, its own limit on requests in flight and its own watches, so that
// a member that is slow, gone or hostile delays nobody but itself.
//
// In go a cluster's name, identity and credentials; out come verbs on its
// objects and a trimmed view of those that carry karmada.io/managed=true: which
// Work they belong to, a hash over exactly the fields that Flotilla applied,
// their reflected status and their health. A read says present, absent or
// unknown; absent is only said by a watch that has seen the whole list.
//
// Nothing is written to a member before it has proved to be the cluster that
// was registered. The package never reads or writes an object of the hub, and
// never starts a program or reads a file that credentials name.
package members
