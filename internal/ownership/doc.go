// Package ownership says who owns what in a member's object, as its
// metadata.managedFields show: which values are ours, what others changed of
// them, what is the member's and must not become ours, and what we take from
// those who brought the object before.
//
// In go objects as a member answers with them, and what is desired of them; out
// come hashes, manifests, patches and words. Members may send what they like: no
// object makes it panic or takes more time than its size. The package talks to
// nobody and never changes what it is given.
package ownership
