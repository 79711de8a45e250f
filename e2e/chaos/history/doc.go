// Package history judges what happened to a fleet while it was disturbed: whether
// what users wrote is there, and nothing ran, went or came back that they did not
// ask for.
//
// In go what users wrote, what members and the control plane showed, what the loops
// sent, and how all of it stands before and after; out come the invariants that do not
// hold, each with its evidence. The package asks nobody and reads no clock.
package history
