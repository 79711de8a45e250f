// Package signing signs artifacts of registries as cosign does with a private key.
//
// In go a private key as cosign generate-key-pair writes it, its password, and digests; out come bundles as those of cosign 3, and
// simple signatures as those of cosign 2, which say the same, and whether somebody's signature is by the key already. It signs without a
// network: neither a certificate nor a log vouches for such a signature, and whoever verifies it has to have the public key. It
// reads no file, and no error shows anything of a key or a password.
package signing
