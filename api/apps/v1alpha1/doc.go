// Package v1alpha1 holds the kind WorkloadRebalancer, which asks for workloads
// to be placed from scratch.
//
// The package has types only.
//
// +kubebuilder:object:generate=true
// +groupName=apps.karmada.io
package v1alpha1
