// Package v1alpha1 holds Flotilla's own kinds about Git. CommitStatus is what a
// forge is to be told about a commit, and what it was told last.
//
// The package has types and names only; it never talks to a forge.
//
// +kubebuilder:object:generate=true
// +groupName=gitops.flotilla.io
package v1alpha1
