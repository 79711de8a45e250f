// Package eviction says when a cluster is let go of that a template is placed off: it is the
// state machine of the graceful eviction tasks on bindings.
//
// In go the spec of a binding and what is known of its copies; out come the tasks that go on,
// those that have come to their end, and what each of them waits for, in words. It makes no task:
// that is done with the placement, by policies/placement. It reads no clock and calls no API.
package eviction
