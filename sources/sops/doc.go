// Package sops opens files that were encrypted with SOPS for age and OpenPGP keys, and for keys that a Service holds.
//
// In go the content of a file, private keys and perhaps a Service; out comes what the file holds, and the values that were encrypted,
// or an error that shows none of either. Every file is authenticated as a whole. It reads and starts nothing, encrypts nothing,
// and sends nothing itself: the library of SOPS links the clients of all clouds, and runs gpg.
package sops
