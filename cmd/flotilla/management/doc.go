// Package management has the commands that decide which clusters take work, cordon, uncordon,
// drain and taint; prune; and those about the program itself, version and options.
//
// In go names or labels of clusters and taints; out come changed Clusters and a line for each.
// A cluster that is already as requested is not written, and a concurrent change by somebody
// else is never overwritten.
package management
