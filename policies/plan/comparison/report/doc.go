// Package report writes a Comparison for people and for programs.
//
// In go a Comparison; out come lines for a terminal, Markdown for a forge, JSON or YAML: a summary, what is risky,
// deletions first, how templates move, and every difference once with the clusters in which it is the same. Foreign
// words, such as those of a pull request, cannot leave their place: in Markdown they end no code, mention nobody, load
// nothing and look like no mark of ours, and on a terminal they are obeyed by nothing. It decides nothing and reads no
// clock.
package report
