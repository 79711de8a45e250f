// Package acting says as whom the Works of a cluster are applied.
//
// In go a Cluster, a Work and its member; out comes who writes there: the hub itself,
// or, where the Cluster says so, those whose word is in the Work, with the rights that
// the member gives them. A Work is never applied as anybody else instead. Observing
// and removing stay with the hub: both are about what was applied before. It also says
// whose rights a Role or binding that was applied may be.
package acting
