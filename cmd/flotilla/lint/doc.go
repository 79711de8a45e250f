// Package lint judges manifests in files as the control plane would when they
// are applied, and as far as they can be judged together.
//
// In go files, and the folders that they were found in, of which package overlays builds what
// Kustomizations make; out come findings, each with its place, and in an order that does
// not depend on that of the files. Of kinds that are not the control plane's own
// only the names are looked at. Nothing is written, and no server is asked.
package lint
