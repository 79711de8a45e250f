// Package planning has the commands that say what a change of files does to each cluster, before it is merged.
//
// In go folders, and a fleet, of the control plane or of a file, and what may happen to clusters; out comes how what each
// cluster holds differs. It asks the same functions that the loops ask, and changes nothing: what it sends to the control
// plane is a dry run.
package planning
