// Package retention leaves to members the fields of an object that they own: those that
// a rule for its kind names, the number of replicas if something there scales
// it, and the image pull secrets that were added to a service account.
//
// In go a manifest, its object in the member, and what was left there before; out
// comes what is sent. It asks the member whether something scales an object, if that matters,
// and writes nothing.
package retention
