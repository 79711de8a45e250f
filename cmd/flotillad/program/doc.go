// Package program is flotillad as a library, for programs that bring placement
// plugins of their own: see examples/plugin.
//
// In go what such a program adds; out come all of flotillad's commands and flags.
// The package reads its flags and the environment, and starts nothing before a
// command is run.
package program
