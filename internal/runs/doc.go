// Package runs cancels what a loop does for an object that has changed meanwhile.
//
// In go the events of a loop's objects and the runs in progress; out comes a
// context for each run, cancelled with ErrSuperseded as its cause once the object
// has another spec, is being deleted or is gone. It writes nothing, and knows
// nothing of what a run does.
package runs
