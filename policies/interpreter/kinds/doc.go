// Package kinds defines what may be known about a kind of resource: one rule per
// operation, each of which may be missing.
//
// The package itself decides nothing. All layers of rules, built in or written by
// users, have this form.
package kinds
