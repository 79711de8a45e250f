// Package fleet runs the fleets that whole-system tests are about: the built programs as
// processes, members that are joined by the command line as users join them, and
// clients of all of them.
//
// In go a folder, the members' names and further flags; out come processes to stop,
// kill and pause, clients, what programs print, and when a check fails, what the fleet
// was doing. Whoever starts a fleet stops it. What is to be true of one is stated by the
// tests of the rooms around it.
package fleet
