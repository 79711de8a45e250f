// Package v1alpha2 holds ResourceBinding and ClusterResourceBinding: for one
// template, where it runs, with how many replicas, and what came of it.
//
// Both kinds share one spec, one status and the interface Binding. The package
// also says how bindings, Works and execution namespaces are named and which
// labels and annotations tie them together; it has no decisions and no I/O.
//
// +kubebuilder:object:generate=true
// +groupName=work.karmada.io
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.karmada.work.v1alpha2
package v1alpha2
