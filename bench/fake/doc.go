// Package fake serves API servers of members that only answer: they store what
// is applied, show it to those who watch, and run nothing. A hundred of them
// fit where one real one does, so that what a placement on many clusters costs
// is the control plane's own.
//
// In go requests over HTTPS from the loops of a control plane; out come the
// answers that a Kubernetes API server with one applier would give, and the
// time at which each object was applied. A Deployment reports at once that all
// of its replicas run. Lists count as one field for their applier. Fakes never
// write anything by themselves, keep nothing, and know only the kinds of their
// table.
package fake
