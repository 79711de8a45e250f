// Package fleet runs the fleets that whole-system tests are about: the built programs as
// processes, members that are joined by the command line as users join them, and
// clients of all of them.
//
// In go a folder, the members' names and further flags; out come processes to stop,
// kill and pause, clients, and what programs print. Whoever starts a fleet stops it. The
// package judges nothing: what is to be true of a fleet is said by the tests of the
// rooms around it.
package fleet
