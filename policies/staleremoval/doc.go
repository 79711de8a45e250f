// Package staleremoval decides whether a removal that was ordered a while ago is still right: whether a copy may go where its cluster, or
// whoever was to remove it, was away before that was done.
//
// In go the binding, the cluster of the copy, and what is known of the copies in the clusters that the template is placed in; out comes
// whether it goes, stays, or waits until one of those clusters has answered; and the words for that. What counts as an absence, and as an answer, is for others to
// say. The package knows nothing of the copy itself, and asks nobody.
package staleremoval
