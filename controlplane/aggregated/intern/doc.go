// Package intern keeps one copy of strings that come again and again.
//
// In go strings as a decoder makes them, each with memory of its own; out come
// equal ones that share it. The package keeps a fixed number of strings and no
// record of who has them, so it neither grows nor needs a call when one is
// not used any more. It never changes what a string says.
//
// The standard library's unique forgets a string at the next collection unless
// somebody keeps the handle, for which the fields of API types have no room.
package intern
