// Package v1alpha1 holds the kinds by which people teach the control plane
// about resources it does not know: ResourceInterpreterCustomization (scripts)
// and ResourceInterpreterWebhookConfiguration (a server to ask), and the wire
// type that such a server is asked with, ResourceInterpreterContext.
//
// The package has types only; it neither runs scripts nor calls servers.
//
// +kubebuilder:object:generate=true
// +groupName=config.karmada.io
package v1alpha1
