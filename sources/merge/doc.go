// Package merge merges the files of two commits that come from a third one, as a forge will.
//
// In go three sets of files; out comes the merged one, or the paths that nobody but a person can merge. Files that both sides have
// changed are merged line by line. Renames are not looked for: a file that one side renamed and the other one changed is a conflict.
// What is merged is foreign: how many lines are compared is bounded. The package reads and writes nothing.
package merge
