// Package spaces keeps the namespaces that hold the Works of clusters, karmada-es-*, to
// the control plane and its administrators, before their cluster is there as well.
//
// In goes a Namespace that is made, or a Role or binding that is written; out comes a
// refusal if it is such a namespace, or in one, and somebody else's, or nothing. It says
// nothing of what else is in them, which is up to their rights, nor of deleting them,
// which is Guard's.
package spaces
