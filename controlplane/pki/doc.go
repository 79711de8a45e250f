// Package pki is the certificate authority of one server: it creates every certificate,
// key and kubeconfig that the server needs, reuses them after a restart, and renews each
// certificate after two thirds of its validity.
//
// Several servers of one store share their authorities and keys through a Common.
//
// In go a folder and a clock; out come names of files. Each file is replaced atomically,
// so a reader always gets a certificate together with its key. The package hands out a
// key only in a file that no one but its owner may read, and signs nothing for others: the
// API's own signers do that with the authority's files.
package pki
