// Package program is flotillad as a library, for programs with their own placement plugins:
// see examples/plugin.
//
// In goes what such a program adds; out come all of flotillad's commands and flags.
// The package reads its flags and the environment, and starts nothing before a
// command is run.
package program
