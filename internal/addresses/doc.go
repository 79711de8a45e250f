// Package addresses knows where no server can be that somebody names.
//
// In goes an address that a name was resolved to, out comes whether to stay away
// from it. The package resolves and calls nothing.
package addresses
