package inventory

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// NewRule returns an empty object of a kind of propagation or override policies, to read one into; nil for other kinds.
func NewRule(kind schema.GroupKind) client.Object {
	if kind.Group != policyv1alpha1.GroupName {
		return nil
	}
	switch kind.Kind {
	case policyv1alpha1.ResourceKindPropagationPolicy:
		return &policyv1alpha1.PropagationPolicy{}
	case policyv1alpha1.ResourceKindClusterPropagationPolicy:
		return &policyv1alpha1.ClusterPropagationPolicy{}
	case policyv1alpha1.ResourceKindOverridePolicy:
		return &policyv1alpha1.OverridePolicy{}
	case policyv1alpha1.ResourceKindClusterOverridePolicy:
		return &policyv1alpha1.ClusterOverridePolicy{}
	default:
		return nil
	}
}
