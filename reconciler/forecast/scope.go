package forecast

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// Scope reports whether a kind has namespaces, and whether that is known.
type Scope func(apiVersion, kind string) (namespaced, known bool)

// Namespaced reports whether an object is in a namespace: as the control plane says, or else a definition among the
// objects, or Kubernetes' own schema. A kind about which nothing is known has namespaces. A nil Scope knows nothing.
func (s Scope) Namespaced(obj *unstructured.Unstructured, among []*unstructured.Unstructured) bool {
	gvk := obj.GroupVersionKind()
	if s != nil {
		if is, known := s(obj.GetAPIVersion(), obj.GetKind()); known {
			return is
		}
	}
	for _, definition := range among {
		group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
		if definition.GetKind() == "CustomResourceDefinition" && group == gvk.Group && kind == gvk.Kind {
			scope, _, _ := unstructured.NestedString(definition.Object, "spec", "scope")
			return scope != "Cluster"
		}
	}
	switch gvk.Group {
	case policyv1alpha1.GroupVersion.Group:
		return !strings.HasPrefix(gvk.Kind, "Cluster")
	case configv1alpha1.GroupVersion.Group, clusterv1alpha1.GroupVersion.Group:
		return false
	}
	is, known := openapi.IsNamespaceScoped(kyaml.TypeMeta{APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind()})
	return is || !known
}
