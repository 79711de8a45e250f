// Package management has the commands that say which clusters take work: cordon,
// uncordon, drain and taint; and those about the program itself, version and options.
//
// In go names or labels of clusters and taints; out come changed Clusters and a
// line for each. A cluster that is as it should be already is not written, and a
// change of somebody else is never overwritten.
package management
