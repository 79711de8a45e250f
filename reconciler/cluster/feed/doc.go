// Package feed makes the watches that show the cluster loop what a member has.
//
// In go the list and watch of one kind, and what is to be kept of its objects; out comes
// an informer whose watch is taken up again by itself, quietly: that a member is away is
// seen by others. It decides nothing and keeps only what it is asked to.
package feed
