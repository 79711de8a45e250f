// Package karmada knows the flags of Karmada's components, and what each of them does
// in flotillad.
//
// In go a program's own flags; out come the same with Karmada's beside them, hidden:
// those without effect are checked and named, those that would mean something else are
// refused with what to use instead. It also writes the page that lists them all. It
// never changes what a flag of the program's own means.
package karmada
