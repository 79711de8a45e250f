// Package customizations holds the rules for kinds of other projects: operators,
// Git tools, batch and machine learning, gateways and certificates.
//
// In go objects of these kinds and what clusters report of them; out come their
// replicas, components, health, statuses and dependencies. Every kind is an entry
// of a table, written with the functions of the packages rules and words; the
// fields and conditions are those that the projects document. Rules never panic,
// whatever an object looks like, and what is not understood counts as absent.
package customizations
