// Package words holds the functions from which rules for kinds of other projects
// are put together: predicates on fields and conditions, components of a
// workload, and dependencies of pods.
//
// In go objects and paths in them, which are field names separated by points; out
// come rules and parts of rules. Nothing here knows a kind, and nothing panics,
// whatever an object looks like.
package words
