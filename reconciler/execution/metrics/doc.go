// Package metrics has the metrics of Works on their way to clusters.
//
// In go the registry that a program serves, and the outcomes of passes over Works; out come metrics
// with a small set of reasons, whatever errors clusters return. The package decides nothing.
package metrics
