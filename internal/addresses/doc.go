// Package addresses knows who is at an address: somebody on the internet, somebody
// in a private network, the machine itself, or nobody that can be named.
//
// In goes an address that a name was resolved to, out comes what it is. The
// package resolves and calls nothing; internal/egress does, for what tenants name.
package addresses
