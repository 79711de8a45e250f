// Package unifiedauth lets users of the hub be themselves in members.
//
// It reads Clusters, ClusterRoles and ClusterRoleBindings, and writes three
// Works per cluster that has an impersonator, owned by the Cluster: a role to
// impersonate those who may reach the cluster through the hub, its binding to
// the impersonator's account, and a binding that gives the hub's administrators
// all rights. What somebody may do in a member stays with the member's own RBAC.
// It deletes these Works when a cluster has no impersonator any more, and never
// writes to a member.
//
// Where a Cluster says that Works are applied as who applied their templates, it also
// writes the Works by which he may: one for each copy of a role or binding of the hub's,
// to the clusters where Works of authors go. Those of a namespace go where its authors'
// do; they stay ten minutes after the last of them.
package unifiedauth
