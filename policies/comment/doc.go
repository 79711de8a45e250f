// Package comment says in Markdown, as forges show it under a pull request, what has become of a commit in
// each cluster.
//
// In go the sum of a source's commit, and what each that applies it has come to, cluster by cluster; out comes
// one text that is no longer than every forge takes: the worst first, and how much was left out. Foreign words,
// such as those of an API server, cannot leave their place in it: they mention nobody, link to nothing, load
// nothing and end no table.
package comment
