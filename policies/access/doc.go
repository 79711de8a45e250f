// Package access says who may be impersonated in a member.
//
// In go the hub's ClusterRoles and ClusterRoleBindings and the name of a
// cluster; out come the users, groups and service accounts that may reach the
// cluster through the hub, and the RBAC objects by which the member lets the hub
// act as them. What somebody may do in the member is not decided here: that is the
// member's own RBAC. The package reads no clock, calls no API and keeps no state.
package access
