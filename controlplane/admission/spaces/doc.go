// Package spaces reserves the namespaces that hold the Works of clusters, karmada-es-*, for
// the control plane and its administrators, even before the cluster exists.
//
// In goes a Namespace that is created, or a Role or binding that is written; out comes
// nothing, or a refusal if it is such a namespace or in one and the user is somebody else.
// The package checks neither other objects in these namespaces, which RBAC does, nor their
// deletion, which Guard does.
package spaces
