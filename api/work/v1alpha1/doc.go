// Package v1alpha1 holds Work: the manifests that one member is to have, and
// what the member reported about them. It also holds the older version of
// ResourceBinding and ClusterResourceBinding, which is served but not stored,
// and pure functions that convert between it and v1alpha2.
//
// +kubebuilder:object:generate=true
// +groupName=work.karmada.io
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.karmada.work.v1alpha1
package v1alpha1
