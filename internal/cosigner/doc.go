// Package cosigner signs artifacts of registries as cosign does, for tests.
//
// In go digests; out come signatures by a key, or by a certificate of a Sigstore that lives in this process, with its own
// authorities and logs, and the public key or the trusted root by which they are verified. It keeps its keys in memory, opens no
// connection, and must never sign anything that is used.
package cosigner
