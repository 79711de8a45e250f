// Package inclusion decides about GitRepositories that include each other's
// artifacts.
//
// In go GitRepositories, as they are; out come the ring in which one includes
// itself, whether an artifact still holds what its source includes, whose
// change concerns those that include it, and what is said of what an artifact
// holds. It reads nothing.
package inclusion
