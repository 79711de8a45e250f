// Package explain explains why a template runs where it runs, or why it does not.
//
// In go a template, its binding, and the policies, overrides and clusters that exist; out comes an Explanation:
// which policy carries the template and which others select it, the verdict about each cluster, how replicas were
// divided, what overrides change in which cluster, and the problems, with the next step. It calls the functions by
// which the loops decide, and has no rule of its own. It changes nothing, and equal input gives equal output.
package explain
