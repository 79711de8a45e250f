// Package v1alpha1 holds the policies that people write: what is propagated to
// which members, what differs per member, how much a tenant may use in all
// members together, and which taints a cluster's conditions bring.
//
// The namespaced and the cluster-scoped kind of a policy share one spec and one
// interface (Policy, Override), so that code handles both as one. The package
// has types and names; it never matches, decides or validates (see policies).
//
// +kubebuilder:object:generate=true
// +groupName=policy.karmada.io
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.karmada-io.karmada.pkg.apis.policy.v1alpha1
package v1alpha1
