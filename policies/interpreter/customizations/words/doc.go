// Package words is what rules for kinds of other projects are written with:
// questions about fields and conditions, parts of a workload, what pods need.
//
// In go objects and paths in them, names between points; out come rules and parts
// of rules. Nothing here knows a kind, and nothing panics, whatever an object looks
// like.
package words
