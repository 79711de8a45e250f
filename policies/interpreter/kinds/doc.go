// Package kinds is the shape of what is known about a kind of resource: one
// rule per operation, each of which may be missing.
//
// In go and out come functions; the package itself decides nothing. Layers of
// rules, built in or written by users, are all given in this shape.
package kinds
