// Package forge publishes commit statuses on GitHub, GitLab, Gitea, Bitbucket and
// Azure DevOps, and as Git notes for servers that have no statuses. On GitHub,
// GitLab and Gitea it also maintains one comment on the pull request that brought
// a commit, lists those that are open, and comments on any of them.
//
// The input is a status or a comment of a commit, and a provider; the result is
// an error from which the caller knows whether to try again, and when. The
// package keeps no state: the caller must know whether a status differs from the
// last one. A token is sent only to the address that it was given for.
package forge
