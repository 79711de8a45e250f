package promotion

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// policy returns the policy for the items, which selects each of them by name.
func (p *Promotion) policy() policyv1alpha1.Policy {
	spec := policyv1alpha1.PropagationSpec{
		ConflictResolution:          policyv1alpha1.ConflictOverwrite,
		PropagateDeps:               p.o.Dependencies,
		PreserveResourcesOnDeletion: ptr.To(true),
		Placement:                   policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{p.o.Cluster}}},
	}
	for i := range p.Items {
		of := objectOf(p.Items[i].Template)
		spec.ResourceSelectors = append(spec.ResourceSelectors, policyv1alpha1.ResourceSelector{
			APIVersion: of.GroupVersion().String(), Kind: of.Kind, Namespace: of.Namespace, Name: of.Name,
		})
	}
	policy := emptyPolicy(objectOf(p.Items[0].Template), p.o.PolicyName)
	*policy.PropagationSpec() = spec
	return policy
}

// emptyPolicy returns a policy of the scope of an object, with the name that it would get.
func emptyPolicy(of Object, name string) policyv1alpha1.Policy {
	if name == "" {
		name = workv1alpha2.PolicyName(of.GroupVersionKind, of.Namespace, of.Name)
	}
	if of.Namespace == "" {
		return &policyv1alpha1.ClusterPropagationPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: "ClusterPropagationPolicy"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
		}
	}
	return &policyv1alpha1.PropagationPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: "PropagationPolicy"},
		ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: name},
	}
}

// readPolicy reads the policy by which an object was promoted. An older version may have
// created it under the former name.
func readPolicy(ctx context.Context, hub client.Reader, of Object, name string) (policyv1alpha1.Policy, error) {
	policy := emptyPolicy(of, name)
	err := hub.Get(ctx, client.ObjectKeyFromObject(policy), policy)
	if name != "" || !apierrors.IsNotFound(err) {
		return policy, err
	}
	former := emptyPolicy(of, workv1alpha2.FormerPolicyName(of.GroupVersionKind, of.Namespace, of.Name))
	if hub.Get(ctx, client.ObjectKeyFromObject(former), former) == nil {
		return former, nil
	}
	return policy, err
}

// returns reports whether the objects of a policy stay in the clusters when the template is
// deleted.
func returns(spec *policyv1alpha1.PropagationSpec) bool {
	return ptr.Deref(spec.PreserveResourcesOnDeletion, false)
}

// only reports whether a policy names this cluster and no other.
func only(spec *policyv1alpha1.PropagationSpec, cluster string) bool {
	affinity := spec.Placement.ClusterAffinity
	return affinity != nil && slices.Equal(affinity.ClusterNames, []string{cluster})
}
