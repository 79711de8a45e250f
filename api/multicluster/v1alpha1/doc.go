// Package v1alpha1 holds the kinds of the Kubernetes Multi-Cluster Services
// API: ServiceExport in the clusters that offer a service, ServiceImport in
// those that use it.
//
// The package has types only.
//
// +kubebuilder:object:generate=true
// +groupName=multicluster.x-k8s.io
package v1alpha1
