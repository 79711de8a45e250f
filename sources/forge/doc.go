// Package forge puts commit statuses where people see them: on GitHub, GitLab,
// Gitea, Bitbucket and Azure DevOps, and as Git notes for servers that have no
// statuses; and, on the first three, one comment under the pull request that brought a commit.
//
// In go a status or a comment of a commit and a place; out comes an error that reports whether
// to try again, and when. The package keeps no state: whether a status differs
// from the last one is the caller's to know. A token goes to the address that
// it was given for and nowhere else.
package forge
