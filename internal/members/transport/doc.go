// Package transport carries the requests to one member cluster, within bounds: so many
// in flight, of one kind and together, so large an answer and so long a wait, so
// that a member that is slow, gone or hostile delays nobody but itself.
//
// In go requests without credentials; out come answers, or errors that distinguish a
// member that cannot be reached from one that does not answer. What the transport is
// made of, credentials, certificates and proxy, can be replaced while it is in use.
// The package knows nothing about objects, and follows no redirect.
package transport
