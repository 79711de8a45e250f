// Package deschedule says what replicas that found no node in their cluster are run
// elsewhere instead.
//
// In go a binding whose replicas are divided by room, how many of them wait in each of
// its clusters, and the clusters with the room that they have; out comes a placement that
// has as many replicas as before, of which none is taken off a cluster that has no place
// in another. What is ready stays. The package reads no clock and asks nobody.
package deschedule
