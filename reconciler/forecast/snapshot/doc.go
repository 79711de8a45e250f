// Package snapshot holds a fleet as it is at one time: all that decides what its clusters hold.
//
// In goes what the control plane answers, or a file that was exported before; out comes the input of a plan, or such a
// file. A file holds no value of a Secret, and nothing by which clusters are reached. It decides nothing, and writes
// nothing to the control plane.
package snapshot
