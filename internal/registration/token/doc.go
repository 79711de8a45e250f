// Package token creates, lists and deletes bootstrap tokens, by which a cluster
// and a control plane authenticate each other for the first time.
//
// In go a connection to the control plane and what the token is valid for; out
// come Secrets there, and the token itself, once, for its creator. Lists and
// errors have only the public part of a token.
package token
