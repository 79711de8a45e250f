// Package karmada has the flags of Karmada's components, and what each of them does in
// flotillad.
//
// In go a program's own flags; out come the same flags and, hidden, Karmada's. Flags
// without effect are checked and reported; flags that would mean something else are
// refused with an alternative. The package also writes the page that lists them all. It
// never changes the meaning of a program's own flags.
package karmada
