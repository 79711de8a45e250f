// Package signature finds out who signed a commit, a tag or another text.
//
// In go the text, its armored signature and the public keys of a Secret; out comes who signed it, or why nobody can say.
// It knows OpenPGP and SSH signatures. It reads no key from anywhere else, asks no key server, and takes the time as an
// argument.
package signature
