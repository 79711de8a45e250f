// Package estimator measures how fast it is counted what fits in a large cluster, and what it
// takes to know it.
//
// In go made-up nodes and pods, as the watches of a member would bring them; out come
// the time of a thousand questions and the bytes that each pod keeps.
package estimator
