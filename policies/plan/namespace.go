package plan

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// SyncsNamespace reports whether a namespace of the hub is created in every member.
// Members have a default namespace of their own.
func SyncsNamespace(namespace metav1.Object, skip propagation.SkipRules) bool {
	name := namespace.GetName()
	return name != corev1.NamespaceDefault && !skip.SkipsNamespace(name) && !propagation.OptsOut(namespace.GetLabels())
}

// Namespace returns the Work that makes a namespace in a cluster. It belongs
// to the namespace, not to a binding, and goes with it. Only cluster-wide
// overrides reach namespaces. A namespace that a member has already is left to
// the member: taking it over would let the hub delete all that lives in it.
func Namespace(namespace *unstructured.Unstructured, cluster *clusterv1alpha1.Cluster, overrides []policyv1alpha1.Override) WorkPlan {
	out := WorkPlan{Cluster: cluster.Name}
	manifest := namespace.DeepCopy()
	manifest.SetAPIVersion("v1")
	manifest.SetKind("Namespace")
	holds := false
	out.Applied, out.Err = override.Matching(overrides, selector.ResourceOf(manifest)).Follow(manifest, cluster, func(o policyv1alpha1.Override, _ int) {
		holds = holds || o.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] != ""
	})
	if out.Err != nil {
		return out
	}
	recordSecrets(manifest, namespace, holds)
	work := &workv1alpha1.Work{
		TypeMeta: workType(),
		ObjectMeta: metav1.ObjectMeta{
			Name:        workv1alpha2.WorkName("Namespace", namespace.GetName(), ""),
			Namespace:   workv1alpha2.ExecutionNamespace(cluster.Name),
			Labels:      map[string]string{workv1alpha2.WorkPermanentIDLabel: WorkID(string(namespace.GetUID()), cluster.Name)},
			Annotations: map[string]string{},
			Finalizers:  []string{workv1alpha2.ExecutionControllerFinalizer},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Namespace", Name: namespace.GetName(), UID: namespace.GetUID(),
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
	}
	maps.Copy(work.Annotations, out.Applied.Annotations())
	if reportsDrift(namespace, policyv1alpha1.DriftRevert) {
		work.Annotations[workv1alpha2.DriftAnnotation] = workv1alpha2.DriftReport
	}
	id := manifestIdentity(work)
	id.annotations[workv1alpha2.ResourceConflictResolutionAnnotation] = workv1alpha2.ResourceConflictResolutionAbort
	stamp(manifest, id)
	encoded, err := Encode(manifest)
	if err != nil {
		out.Err = fmt.Errorf("encode namespace: %w", err)
		return out
	}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{encoded}
	out.Work = work
	return out
}
