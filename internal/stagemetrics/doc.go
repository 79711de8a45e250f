// Package stagemetrics counts what loops do: how long a stage of a change's way takes, how it
// ends, and how much waits.
//
// In go the registry that a program serves, names, and what happens; out come figures
// in it. Loops that begin anew in one process go on with the figures of those before.
// No label names an object: the results of a stage are three, and its reasons are
// counted by name up to a bound. The package decides nothing, and without a registry
// it counts what nobody reads.
package stagemetrics
