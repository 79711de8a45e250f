// Package drain predicts what becomes of what runs in a cluster that is drained.
//
// In go the clusters and bindings of one moment; out comes a row for each binding that runs in the
// cluster, is leaving it or has left it. Where each goes is decided as the loops decide it.
package drain
