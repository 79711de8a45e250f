// Package sops opens files that were encrypted with SOPS for age and OpenPGP keys.
//
// In go the content of a file and private keys; out comes what the file holds, and the values that were encrypted, or an
// error that shows none of either. Every file is authenticated as a whole. It reads and starts nothing, encrypts nothing,
// and knows no key of a cloud: the library of SOPS links all of their clients, and runs gpg.
package sops
