// Package arch holds the rules that keep the rooms apart, as tests: which room
// may import which, what every package must say about itself, and how large
// its parts may grow.
//
// It contains no code that runs in a program.
package arch
