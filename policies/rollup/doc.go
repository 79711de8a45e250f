// Package rollup aggregates what clusters report: into the status of a binding, the state of a template over its
// clusters, and the one line that a commit status shows.
//
// In go bindings, Works and templates as the hub holds them; out come statuses, conditions and texts. Lists are
// sorted, and texts have nothing that changes with time, so that equal input gives equal output and an unchanged
// status is not written.
package rollup
