// Package v1alpha1 holds the kind Remedy, which says what is to be done about
// clusters in certain conditions.
//
// The package has types only.
//
// +kubebuilder:object:generate=true
// +groupName=remedy.karmada.io
package v1alpha1
