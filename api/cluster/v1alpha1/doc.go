// Package v1alpha1 holds the kind Cluster: one member, how to reach it, and
// what it reported about itself.
//
// The kind is served in process, not by a CRD, because it has the sub-resource
// `proxy`. In goes nothing and out come values: the package has types, names
// and the questions a Cluster can answer about itself; it never validates or
// defaults (see policies/validate).
//
// +kubebuilder:object:generate=true
// +groupName=cluster.karmada.io
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.karmada-io.karmada.pkg.apis.cluster.v1alpha1
package v1alpha1
