package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/quota"
)

// quotaKind is the kind in which clusters get their share of a FederatedResourceQuota.
const quotaKind = "ResourceQuota"

// ShareName is the name of the Works that bring shares of a quota: that of a ResourceQuota of
// its namespace and name which a policy carries.
func ShareName(q types.NamespacedName) string {
	return workv1alpha2.WorkName(quotaKind, q.Name, q.Namespace)
}

// ShareTakenError says that a cluster gets no share because a policy carries a ResourceQuota of
// the quota's namespace and name there, which has precedence: who carries such is trusted with
// more than who may write quotas of a namespace.
type ShareTakenError struct {
	// Quota has the share; Binding is that of the ResourceQuota.
	Quota, Binding types.NamespacedName
}

// Error names both, and what to do.
func (e *ShareTakenError) Error() string {
	return fmt.Sprintf("it has the ResourceQuota %s of the binding %s, and so no share: give the FederatedResourceQuota or the ResourceQuota another name", e.Quota, e.Binding)
}

// ShareBinding is the key of the binding that a ResourceQuota of a quota's namespace and name
// has which a policy carries.
func ShareBinding(q types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: q.Namespace, Name: workv1alpha2.BindingName(quotaKind, q.Name)}
}

// Shares returns the Works that bring a quota's shares to those of the clusters that have one,
// sorted by cluster. Beside is the binding under ShareBinding; nil: there is none. Where it
// goes no share does, and Err is a *ShareTakenError. A ResourceQuota that a cluster has already
// is left to the cluster: who may write quotas of a namespace here may not write what its own
// administrators set there. No override reaches a share, for the sum of all is what may not be
// exceeded.
func Shares(q *policyv1alpha1.FederatedResourceQuota, clusters []*clusterv1alpha1.Cluster, beside *workv1alpha2.ResourceBinding) []WorkPlan {
	shares := quota.Shares(q)
	taken := map[string]bool{}
	if beside != nil && beside.Spec.Resource.Kind == quotaKind {
		for _, target := range Targets(SpecOf(beside)) {
			taken[target.Name] = true
		}
	}
	var out []WorkPlan
	for _, cluster := range clusters {
		hard, has := shares[cluster.Name]
		if !has {
			continue
		}
		planned := WorkPlan{Cluster: cluster.Name}
		if key := (types.NamespacedName{Namespace: q.Namespace, Name: q.Name}); taken[cluster.Name] {
			planned.Err = &ShareTakenError{Quota: key, Binding: ShareBinding(key)}
		} else {
			planned.Work, planned.Err = share(q, cluster, hard)
		}
		out = append(out, planned)
	}
	slices.SortFunc(out, func(a, b WorkPlan) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out
}

func share(q *policyv1alpha1.FederatedResourceQuota, cluster *clusterv1alpha1.Cluster, hard corev1.ResourceList) (*workv1alpha1.Work, error) {
	if len(q.Name) > validation.LabelValueMaxLength {
		return nil, fmt.Errorf("a quota with shares needs a name of at most %d characters: its Works have it as a label", validation.LabelValueMaxLength)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.ResourceQuota{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: quotaKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: q.Namespace, Name: q.Name},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard},
	})
	if err != nil {
		return nil, fmt.Errorf("make the ResourceQuota: %w", err)
	}
	key := types.NamespacedName{Namespace: q.Namespace, Name: q.Name}
	work := &workv1alpha1.Work{
		TypeMeta: workType(),
		ObjectMeta: metav1.ObjectMeta{
			Name:      ShareName(key),
			Namespace: workv1alpha2.ExecutionNamespace(cluster.Name),
			Labels: map[string]string{
				policyv1alpha1.FederatedResourceQuotaNamespaceLabel: q.Namespace,
				policyv1alpha1.FederatedResourceQuotaNameLabel:      q.Name,
				workv1alpha2.WorkPermanentIDLabel:                   WorkID("FederatedResourceQuota/"+key.String(), cluster.Name), // stays, as it must, when the quota is made anew
			},
			Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer},
		},
	}
	id := manifestIdentity(work)
	id.annotations[workv1alpha2.ResourceConflictResolutionAnnotation] = workv1alpha2.ResourceConflictResolutionAbort
	manifest := &unstructured.Unstructured{Object: content}
	stamp(manifest, id)
	encoded, err := Encode(manifest)
	if err != nil {
		return nil, fmt.Errorf("encode the ResourceQuota: %w", err)
	}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{encoded}
	return work, nil
}

// ShareOf returns the quota of which a Work brings a share, and false for all other Works.
func ShareOf(work *workv1alpha1.Work) (types.NamespacedName, bool) {
	key := types.NamespacedName{
		Namespace: work.Labels[policyv1alpha1.FederatedResourceQuotaNamespaceLabel],
		Name:      work.Labels[policyv1alpha1.FederatedResourceQuotaNameLabel],
	}
	bound := work.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] != "" || work.Labels[workv1alpha2.ClusterResourceBindingPermanentIDLabel] != ""
	return key, !bound && key.Namespace != "" && key.Name != "" && work.Name == ShareName(key)
}

// ShareBeside returns the quota, whether there is one or not, whose shares a binding has
// precedence over; false where the binding is not named as that of a ResourceQuota.
func ShareBeside(binding types.NamespacedName) (types.NamespacedName, bool) {
	name, is := strings.CutSuffix(binding.Name, workv1alpha2.BindingName(quotaKind, ""))
	return types.NamespacedName{Namespace: binding.Namespace, Name: name}, is && name != "" && binding.Namespace != ""
}
