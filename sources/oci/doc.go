// Package oci reads artifacts from container registries.
//
// In go the URL of a repository, credentials, and a reference; out come the digest that the reference stands for, the bytes of
// one layer of what has that digest, and the signatures that are kept beside it. A tag is asked for once; all that follows is
// asked for by digest, and is refused if it is something else. Signatures are handed out as they are: nobody has verified them
// here. Every answer is bounded. Connections are opened by internal/egress only; credentials go to the registry itself, and to a
// server of tokens of its own domain.
//
// Errors contain nothing of an answer, and no secret. The package writes nothing, to disk or to a registry, and unpacks nothing.
package oci
