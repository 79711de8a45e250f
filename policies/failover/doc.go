// Package failover decides which clusters a template has to be moved off.
//
// In go Clusters with their taints and conditions, what a placement tolerates and the
// time; out come the clusters that it must not run in any more, why, and when the next
// one will be due. Where it goes instead, whether it can go at all and when the old copy
// is let go of is decided by policies/placement.
package failover
