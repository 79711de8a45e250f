// Package health judges the health of what a Kustomization owns: on the hub, and
// in every member that runs it.
//
// In go identities and the objects as they are on the hub; out comes a
// verdict for each, and the parts from which a revision's rollup is made. It
// reads bindings and policies from a cache and writes nothing.
package health
