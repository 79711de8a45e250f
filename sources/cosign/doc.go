// Package cosign finds out who signed the artifact of a registry with cosign.
//
// In go the digest of the artifact, what a registry has as its signatures, and the public keys, or the trusted root and the
// identities, that count; out comes who signed it, or why nobody can say. It knows the bundles of cosign 3 and the simple signatures
// of cosign 2. It opens no connection: certificates, logs and times are judged by the trusted root alone. It has no clock: a signature
// by a certificate counts if both were good when it was made, which a log or an authority of the root has to vouch for.
package cosign
