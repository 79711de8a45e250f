// Package finished decides whether a workload that runs to its end, such as a
// Job, has ended.
//
// In goes the status that a cluster reports of an object; out comes whether the
// object will do nothing more there: it succeeded, or failed for good. In another
// cluster it would begin again, so it should not be moved. The package reads
// fields of status and decides nothing else. For a kind that it does not know,
// nothing has ended.
package finished
