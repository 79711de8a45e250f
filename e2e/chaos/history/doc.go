// Package history judges what happened to a fleet while it was disturbed: whether
// what users wrote is there, and nothing ran, went or came back that they did not
// ask for.
//
// In go what a user wrote, what the members showed, and how all of it stands in the
// end; out come the invariants that do not hold, each with what tells so. The
// package asks nobody and reads no clock.
package history
