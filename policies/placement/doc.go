// Package placement chooses member clusters for a binding and says how many
// replicas each of them runs.
//
// Input is a Request and a Snapshot, output a Result with a refusal per
// cluster that does not fit. Decide composes this with the question whether a
// decision is due, and returns what a loop writes on the binding. The package
// reads no clock, calls no API and keeps no state: equal input gives equal
// output.
package placement
