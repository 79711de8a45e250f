// Package status brings what clusters report back to bindings and templates.
//
// It reads bindings, their Works, templates and clusters from caches. It writes
// the whole status of bindings of both scopes (conditions Scheduled and
// FullyApplied, what was decided when, and what each cluster reports) and the
// status of templates whose kind has a rule for adding up. It touches nothing
// else, and writes nothing that has not changed.
//
// Completion and failures are written at once, partial progress after a moment without changes. That a cluster has
// yet to report what it gets waits for a second, and for 10 s while that cluster takes up others, as when many bindings
// are moved. A cluster that for 10 s takes up nothing of what is sent to it does not count as having applied what it is
// behind with. Of one that is not ready for a minute no replica counts as ready in templates of Kubernetes' own kinds;
// bindings go on to say what it reported last. Reasons: those of the scheduling decision, and FullyApplied
// True/FullyAppliedSuccess, False/FullyAppliedFailed.
package status
