// Package notary signs artifacts of registries as Notation does, for tests.
//
// In go subjects, and what is signed; out come envelopes, and the certificates and the trust policy by which they are verified. It
// keeps its keys in memory, opens no connection, and must never sign anything that is used.
package notary
