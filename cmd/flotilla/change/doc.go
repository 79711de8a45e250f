// Package change has the commands that change what the control plane holds:
// kubectl's own create, delete, edit, patch, label, annotate and apply, apply for
// chosen clusters, and promote.
//
// In go flags, files and kubeconfigs; out come changes on the control plane and
// lines that say what was changed. No command writes to a member, and none prints
// what a Secret holds unless it is asked for that object's YAML or JSON.
package change
