// Package explain says why a template runs where it runs, or why it does not.
//
// In go a template, its binding, and the policies, overrides and clusters that
// there are; out comes an Explanation: who carries it and who would have liked
// to, what each cluster was found to be, how replicas were divided, what
// overrides change where, and what is wrong, with the next step. It is put
// together from the functions that the loops decide with and holds no rule of
// its own. It decides nothing, and equal input gives equal output.
package explain
