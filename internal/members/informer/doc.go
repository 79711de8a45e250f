// Package informer is what is seen of the objects of one member cluster: a trimmed
// view of those that carry karmada.io/managed=true, kept by one watch for each kind
// that is asked about.
//
// In go clients for the member, and an interpreter; out come objects reduced to
// which Work they belong to, a hash over exactly the fields that Flotilla applied,
// their reflected status and their health, and calls when these change. A read
// says present, absent or unknown; absent is only reported by a watch that has seen the
// whole list. What a kind, an object or a rule does wrong is its own trouble: the
// others are seen all the same. The package writes nothing.
package informer
