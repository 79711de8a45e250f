// Command crds finishes the CustomResourceDefinitions that controller-gen
// wrote: it drops the kinds of Flux that are not served, adds what Flotilla adds
// to the others, and marks all of them so that no Kustomization prunes them or
// substitutes variables in them.
//
// In go two folders of YAML files, out comes one. It reaches no network.
package main
