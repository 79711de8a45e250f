// Package impersonation decides as whom the Works of a cluster are applied.
//
// In go a Cluster, a Work and its member; out comes who writes there: the hub itself,
// or, if the Cluster has the annotation for that, the authors of the Work, with the rights that
// they have in the member. A Work is never applied as anybody else instead. The hub itself
// observes and removes objects, as both are about what was applied before. The package also
// returns whose missing rights a Role or binding that was applied may grant.
package impersonation
