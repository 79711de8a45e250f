// Package retention leaves to members what is theirs of an object: the fields that
// a rule for its kind names, the number of replicas where something there scales
// it, and the image pull secrets that were added to a service account.
//
// In go a manifest, its object as it stands and what was left there before; out
// comes what is sent. It asks the member who scales an object, where that counts,
// and writes nothing.
package retention
