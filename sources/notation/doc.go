// Package notation finds out who signed the artifact of a registry with Notation.
//
// In go the trust policy and the certificates of a Secret, what the artifact is, and one of its signatures; out comes who signed it,
// or why nobody can say. It knows the envelopes JWS and COSE. What the policy leaves open is refused rather than taken: a level by
// which anybody may sign. Whether a certificate is revoked is asked of the servers that it names, with a client that decides which of
// them may be reached; the package opens no connection otherwise, runs no plugin, and reads no file. The clock is the system's.
package notation
