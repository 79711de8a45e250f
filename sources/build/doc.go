// Package build turns files into Kubernetes objects.
//
// In go files in memory, a path, and the fields of a Flux Kustomization that
// change what is built; out come objects in the order in which to apply them, or
// an error that names the file or object and what to do next. A folder with a
// kustomization.yaml is built by kustomize; in one without, every YAML file is a
// manifest. kustomize is not called where it would change nothing.
//
// The files are untrusted: sizes, counts, depths and YAML aliases are bounded,
// and whatever would make kustomize access the network, another program or a file
// outside is refused before kustomize runs. The package does no I/O.
package build
