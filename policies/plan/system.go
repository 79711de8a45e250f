package plan

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// System returns the Work that makes an object of the control plane's own in a
// cluster. It belongs to the Cluster and goes with it. No override reaches it,
// and it takes over an object of the name that the cluster has already.
func System(obj *unstructured.Unstructured, cluster *clusterv1alpha1.Cluster) (*workv1alpha1.Work, error) {
	kind, name, namespace := obj.GetKind(), obj.GetName(), obj.GetNamespace()
	id := workv1alpha2.FormerWorkName(kind, name, namespace) // ids stay when names change
	return systemOf(workv1alpha2.WorkName(kind, name, namespace), id, cluster, obj)
}

// SystemOf is System for several objects, in this order, in a Work of the name.
func SystemOf(name string, cluster *clusterv1alpha1.Cluster, objs ...*unstructured.Unstructured) (*workv1alpha1.Work, error) {
	return systemOf(name, name, cluster, objs...)
}

func systemOf(name, id string, cluster *clusterv1alpha1.Cluster, objs ...*unstructured.Unstructured) (*workv1alpha1.Work, error) {
	work := &workv1alpha1.Work{
		TypeMeta: workType(),
		ObjectMeta: metav1.ObjectMeta{
			Name:       name,
			Namespace:  workv1alpha2.ExecutionNamespace(cluster.Name),
			Labels:     map[string]string{workv1alpha2.WorkPermanentIDLabel: WorkID(string(cluster.UID)+"/"+id, cluster.Name)},
			Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: clusterv1alpha1.ResourceKindCluster, Name: cluster.Name, UID: cluster.UID,
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
	}
	for _, obj := range objs {
		manifest := obj.DeepCopy()
		labels := mapOf(manifest.GetLabels())
		labels[workv1alpha2.KarmadaSystemLabel] = workv1alpha2.KarmadaSystemLabelValue
		manifest.SetLabels(labels)
		identity := manifestIdentity(work)
		identity.annotations[workv1alpha2.ResourceConflictResolutionAnnotation] = workv1alpha2.ResourceConflictResolutionOverwrite
		stamp(manifest, identity)
		encoded, err := Encode(manifest)
		if err != nil {
			return nil, fmt.Errorf("encode %s %s: %w", manifest.GetKind(), manifest.GetName(), err)
		}
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, encoded)
	}
	return work, nil
}
