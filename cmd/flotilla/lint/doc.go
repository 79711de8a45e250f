// Package lint checks manifests in files as the control plane would when they are applied, and
// also against each other.
//
// In go files, and the folders that contain them, whose Kustomizations package overlays
// builds; out come findings, each with its place, in an order that does not depend on the
// order of the files. Of kinds that are not the control plane's own it checks only the
// names. It writes nothing and makes no request.
package lint
