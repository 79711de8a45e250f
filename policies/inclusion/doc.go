// Package inclusion decides about GitRepositories that include each other's
// artifacts.
//
// In go GitRepositories, as they are; out come the ring in which one includes
// itself, whether an artifact still holds what its source includes, and whose
// change concerns those that include it. It reads nothing.
package inclusion
