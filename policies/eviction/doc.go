// Package eviction decides when the old copy of a template may be removed from a
// cluster that it was moved away from: it is the state machine of the graceful
// eviction tasks on bindings.
//
// In go the spec of a binding and what is known about its copies; out come the
// tasks that go on, those that have ended, and what each task waits for, in
// words. It creates no tasks: policies/placement does, with the placement. It
// reads no clock and calls no API.
package eviction
