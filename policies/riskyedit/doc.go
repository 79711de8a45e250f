// Package riskyedit finds edits that take something out of clusters in a way that looks like a mistake.
//
// In go two versions of a policy and the clusters of the fleet, before and after an edit of them; out come the
// clusters that it leaves, and what is wrong with that: it asks for something that no cluster has, such as a name
// that is mistyped, or for no cluster at all. To leave a cluster is no mistake by itself. Which of the clusters run
// something is for others to find out.
//
// Of an object that goes along with templates (Dependency), it finds the clusters in which a template stays without it.
package riskyedit
