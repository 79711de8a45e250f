// Package applier brings a set of objects to the hub as a whole: it reads
// what is there, checks every object before it writes the first one, applies
// what differs in stages, and deletes what is no longer wanted.
//
// In go the objects of one revision and the identity to act as; out come a plan
// and, once carried out, what was done to each object. It writes by server-side
// apply under the field manager that Flux uses, so that a fleet can move here
// without losing track of fields. An object that is as wanted is never
// written. An object is deleted only if it carries the owner's labels, and only
// in the incarnation (UID) that was read. It writes no status and emits no event.
package applier
