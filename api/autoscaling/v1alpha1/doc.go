// Package v1alpha1 holds the kinds that scale a workload over all its clusters:
// FederatedHPA by load, CronFederatedHPA by the clock.
//
// The package has types only.
//
// +kubebuilder:object:generate=true
// +groupName=autoscaling.karmada.io
package v1alpha1
