// Package pki is the certificate authority of one server: it makes every
// certificate, key and kubeconfig that the server needs, finds them again after
// a restart, and renews each at two thirds of its life.
//
// Several servers of one store have their authorities and keys in common, through
// a Common.
//
// In goes a folder and a clock; out come names of files. Each file is replaced
// whole, so whoever reloads it sees a certificate together with its key. The
// package never hands out a key other than through a file that only its owner
// may read, and signs nothing for others: the API's own signers do that with
// the authority's files.
package pki
