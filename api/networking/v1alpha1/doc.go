// Package v1alpha1 holds the kinds that connect workloads of several clusters:
// MultiClusterService and MultiClusterIngress.
//
// The package has types and names only.
//
// +kubebuilder:object:generate=true
// +groupName=networking.karmada.io
package v1alpha1
