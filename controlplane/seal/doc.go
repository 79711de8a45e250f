// Package seal keeps what all servers of one store must have in common, the
// authorities and keys of package pki, in that store: sealed with a key that the
// store never sees. It also listens there to what time it is for whoever leads.
//
// In go the store's address and the file of the key; out comes a pki.Common. The
// package makes the key where nothing is sealed yet, replaces nothing that it
// cannot open, and writes neither keys nor what they seal anywhere else.
package seal
