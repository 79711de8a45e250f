// Package intern keeps one copy of strings that occur repeatedly.
//
// In go strings from a decoder, each with its own memory; out come equal strings that
// share memory. The package keeps a fixed number of strings and does not track their
// users, so it neither grows nor needs a call when a string is no longer used. It never
// changes the content of a string.
//
// The standard library's unique forgets a string at the next garbage collection unless
// somebody keeps the handle, and the fields of API types cannot hold handles.
package intern
