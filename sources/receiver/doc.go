// Package receiver is the reconciler of Flux's Receiver, and the server that their senders reach.
//
// In go Receivers, the Secrets that they refer to, and the requests of forges and registries; out come their status, and
// the annotation that asks for a reconcile on the sources and Kustomizations that a request concerns. Each is asked once
// in a second at most: a request that comes again and again costs nothing more. The server is public, so it answers
// POST below /hook/ alone, reads no more than 64 KiB, and says nothing of what it does not know; how much one address
// and all together may ask is bounded.
//
// Conditions that it owns: Ready, Reconciling and Stalled, with Flux's reasons and NotListening.
package receiver
