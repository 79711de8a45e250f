// Package crds holds the CustomResourceDefinitions of all kinds that are served
// by CRDs: Karmada's, Flux's and ours.
//
// Nothing goes in but options, and out come definitions that are ready to be
// installed. They are generated from the Go types (hack/generate.sh); the
// package never installs them.
package crds
