// Package change has the commands that change objects on the control plane: kubectl's own
// create, delete, edit, patch, label, annotate and apply, apply for chosen clusters, and
// promote.
//
// In go flags, files and kubeconfigs; out come changes on the control plane and lines about
// what was changed. No command writes to a member, and none prints the content of a Secret
// unless that object's YAML or JSON is requested.
package change
