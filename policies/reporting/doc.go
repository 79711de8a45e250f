// Package reporting decides which successes are reported to Karmada's clients.
//
// In go an object as it was and as it is; out come the Events that the step between
// the two is worth, in the order in which Karmada's controllers would emit them. It
// knows no client, and says nothing about objects that stay as they are.
package reporting
