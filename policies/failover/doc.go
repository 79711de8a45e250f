// Package failover decides which clusters a template has to be moved away from.
//
// In go Clusters with their taints and conditions, the tolerations of a placement
// and the time; out come the clusters that it must not run in any more, why, and
// when that changes next. Where it goes instead, and whether it can, is decided
// by policies/placement, and when its old copy is removed by policies/eviction.
package failover
