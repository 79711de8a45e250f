// Package pattern matches the patterns of Lua.
//
// In go a text, a pattern and a number of steps; out comes where the pattern
// matches and what it captures, or that it took more steps than it may. The
// package keeps nothing, and never takes longer than its steps.
package pattern
