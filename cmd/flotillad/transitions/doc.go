// Package transitions logs what happens to the fleet and no loop of this process
// logs for the whole of it: that a cluster in pull mode is ready again, or no longer,
// which its agent writes; that applications are moved off a cluster, which the
// scheduler logs binding by binding; and that they are not, as many clusters were
// lost at once, and that this is over.
//
// In go the changes of Clusters and bindings in a cache. Out comes a line for each
// cluster that turned, and one for all that is moved off a cluster for one cause.
// It reads no server and writes no object.
package transitions
