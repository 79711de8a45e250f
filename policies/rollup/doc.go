// Package rollup sums up what clusters report: the status of a binding, the
// state of a template over its clusters, and the one line that a commit shows.
//
// In go bindings, Works and templates as the hub holds them; out come statuses,
// conditions and texts. Lists are sorted and texts hold nothing that ticks, so
// that equal input gives equal output and an unchanged status is not written.
package rollup
