// Package v1alpha1 holds the kind ResourceRegistry, which says what of the
// members is kept in a cache on the hub, and the virtual kinds under which that
// cache is asked.
//
// The kinds are served in process, not by CRDs. The package has types only.
//
// +kubebuilder:object:generate=true
// +groupName=search.karmada.io
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.karmada-io.karmada.pkg.apis.search.v1alpha1
package v1alpha1
