// Package review has open pull requests told what their merge would do to each cluster.
//
// It reads PullRequestReviews, their GitRepositories and Providers, lists open pull requests at the forge, fetches their commits, merges
// them in memory, and compares what clusters would hold, by reconciler/forecast/rehearsal. The result is a comment on each, and a status
// of its head. A review is of a head, of the branch's commit, of the fleet and of the rules: once one of them is another one, the status
// is pending until it was looked at again. Of a pull request, counts, names of rules and one line of text are kept in the status;
// nothing else of it reaches the control plane.
//
// Pull requests are looked at side by side, each for a bounded time; after that the forge is asked anew, so that a new commit never
// waits for many others. What keeps one from being reviewed keeps no other.
//
// One of a fork is not fetched before somebody who may write to the repository has labelled that very head.
//
// It owns the status of PullRequestReviews; its condition is Ready.
package review
