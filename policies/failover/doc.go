// Package failover decides which clusters a template has to be moved off.
//
// In go Clusters with their taints and conditions, what a placement tolerates and the
// time; out come the clusters that it must not run in any more, why, and when the next
// one will be due. Where it goes instead and whether it can go at all is
// decided by policies/placement, and when the old copy is let go of by policies/eviction.
package failover
