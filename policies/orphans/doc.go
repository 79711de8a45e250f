// Package orphans says which objects of a member are left behind: applied from
// here, and named by no Work any more.
//
// In go what an object says of itself, whose the member is, and the Work that the
// object names; out comes whether it is an orphan, and the words for people. Of what
// does not say whose it is, or says that it is another hub's, nothing is concluded.
// The package talks to nobody.
package orphans
