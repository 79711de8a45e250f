// Package messenger sends messages about Events over HTTP.
//
// In go a composed request, and the certificates and the proxy of its Provider; out comes an error from which the caller knows
// whether to try again, and when. It connects to what egress allows, follows no redirect, reads no more of an answer than it
// needs, and repeats nothing of it. It keeps no state, and never tries twice by itself.
package messenger
