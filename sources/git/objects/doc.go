// Package objects keeps on disk what was fetched of Git repositories, so that a change of one costs what has changed.
//
// In go the key of a repository, a pack, and the commits whose trees are in it; out come the same, the next time. Nothing that is read is
// to be trusted: the pack is for a reader that knows each object by the hash of its content. All of it may be lost, damaged or deleted at any
// time, which costs a fetch; so what cannot be kept is not, and nobody is told. The size of all is bounded, and what nobody used for a week goes.
// No name of a file says more of a key than its digest.
package objects
