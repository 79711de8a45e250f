package propagation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// Claim is the metadata of a template and its binding that names the policy by
// which they are propagated.
type Claim struct {
	Labels, Annotations map[string]string
}

// PolicyRef names a policy.
type PolicyRef struct {
	// Namespace is empty for a cluster-wide policy.
	Namespace, Name string
	// ID is the policy's permanent id.
	ID string
}

// RefOf returns the reference to p.
func RefOf(p policyv1alpha1.Policy) PolicyRef {
	return PolicyRef{Namespace: p.GetNamespace(), Name: p.GetName(), ID: p.GetLabels()[IDLabel(p)]}
}

// IDLabel returns the label that holds p's permanent id.
func IDLabel(p policyv1alpha1.Policy) string {
	if p.GetNamespace() == "" {
		return policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel
	}
	return policyv1alpha1.PropagationPolicyPermanentIDLabel
}

// String returns the name, with the namespace before it where there is one.
func (r PolicyRef) String() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// ClaimOf returns the claim that p sets on its templates.
func ClaimOf(p policyv1alpha1.Policy) Claim {
	ref := RefOf(p)
	if ref.Namespace == "" {
		return Claim{
			Labels:      map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: ref.ID},
			Annotations: map[string]string{policyv1alpha1.ClusterPropagationPolicyAnnotation: ref.Name},
		}
	}
	return Claim{
		Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: ref.ID},
		Annotations: map[string]string{
			policyv1alpha1.PropagationPolicyNamespaceAnnotation: ref.Namespace,
			policyv1alpha1.PropagationPolicyNameAnnotation:      ref.Name,
		},
	}
}

// ClaimKeys returns all keys that claims of either scope use, and
// WaitsAnnotation. A new claim removes those that it does not set.
func ClaimKeys() (labels, annotations []string) {
	return []string{
			policyv1alpha1.PropagationPolicyPermanentIDLabel,
			policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel,
		}, []string{
			policyv1alpha1.PropagationPolicyNamespaceAnnotation,
			policyv1alpha1.PropagationPolicyNameAnnotation,
			policyv1alpha1.ClusterPropagationPolicyAnnotation,
			WaitsAnnotation,
		}
}

// Claimed returns the policy by which obj is claimed. A complete claim of a
// namespaced policy goes before one of a cluster-wide policy; an incomplete claim
// counts as none.
func Claimed(obj metav1.Object) (PolicyRef, bool) {
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	ref := PolicyRef{
		Namespace: annotations[policyv1alpha1.PropagationPolicyNamespaceAnnotation],
		Name:      annotations[policyv1alpha1.PropagationPolicyNameAnnotation],
		ID:        labels[policyv1alpha1.PropagationPolicyPermanentIDLabel],
	}
	if ref.Namespace != "" && ref.Name != "" && ref.ID != "" {
		return ref, true
	}
	ref = PolicyRef{
		Name: annotations[policyv1alpha1.ClusterPropagationPolicyAnnotation],
		ID:   labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel],
	}
	return ref, ref.Name != "" && ref.ID != ""
}

// Set sets the claim on obj and removes what is left of another policy's claim.
// It reports whether obj changed.
func (c Claim) Set(obj metav1.Object) bool {
	labelKeys, annotationKeys := ClaimKeys()
	labels, a := replaceKeys(obj.GetLabels(), labelKeys, c.Labels)
	annotations, b := replaceKeys(obj.GetAnnotations(), annotationKeys, c.Annotations)
	if a {
		obj.SetLabels(labels)
	}
	if b {
		obj.SetAnnotations(annotations)
	}
	return a || b
}

// Unclaim removes every claim from obj and reports whether there was any.
func Unclaim(obj metav1.Object) bool { return Claim{}.Set(obj) }

// replaceKeys returns a copy of have in which the given keys have the values of
// want, or are removed.
func replaceKeys(have map[string]string, keys []string, want map[string]string) (map[string]string, bool) {
	changed := false
	out := make(map[string]string, len(have)+len(want))
	for k, v := range have {
		out[k] = v
	}
	for _, k := range keys {
		old, had := have[k]
		v, wanted := want[k]
		switch {
		case wanted && (!had || old != v):
			out[k], changed = v, true
		case !wanted && had:
			delete(out, k)
			changed = true
		}
	}
	return out, changed
}
