// Package token makes, lists and removes bootstrap tokens, by which clusters get
// to know a control plane and the control plane them.
//
// In go a connection to the control plane and what the token is to be good for;
// out come Secrets there, and the token itself once, to who made it. Lists and
// errors show only the public part of a token.
package token
