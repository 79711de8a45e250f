// Package pattern matches Lua patterns.
//
// In go a text, a pattern and a number of steps; out comes where the pattern
// matches and what it captures, or an error once the steps are used up. The
// package keeps nothing, and always ends within its steps.
package pattern
