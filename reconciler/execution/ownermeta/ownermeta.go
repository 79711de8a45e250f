// Package ownermeta sets, reads and removes the metadata of an object in a member by which it is
// managed and names its Work.
//
// In go objects and Works; out come objects, patches, and owners. It calls no
// API.
package ownermeta

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Set marks an object as managed, by the given Work. Manifests that
// Flotilla renders have that metadata already, those that people write need not.
func Set(obj *unstructured.Unstructured, work client.ObjectKey) {
	set := func(in map[string]string, key, value string) map[string]string {
		if in == nil {
			in = map[string]string{}
		}
		in[key] = value
		return in
	}
	obj.SetLabels(set(obj.GetLabels(), workv1alpha2.ManagedByKarmadaLabel, workv1alpha2.ManagedByKarmadaLabelValue))
	annotations := set(obj.GetAnnotations(), workv1alpha2.WorkNamespaceAnnotation, work.Namespace)
	obj.SetAnnotations(set(annotations, workv1alpha2.WorkNameAnnotation, work.Name))
}

// The labels and annotations that tie a member's object to the hub.
var (
	ourLabels = []string{
		workv1alpha2.ManagedByKarmadaLabel,
		workv1alpha2.WorkPermanentIDLabel,
		workv1alpha2.ResourceBindingPermanentIDLabel,
		workv1alpha2.ClusterResourceBindingPermanentIDLabel,
		policyv1alpha1.PropagationPolicyPermanentIDLabel,
		policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel,
	}
	ourAnnotations = []string{
		workv1alpha2.WorkNamespaceAnnotation,
		workv1alpha2.WorkNameAnnotation,
		workv1alpha2.HubAnnotation,
		workv1alpha2.ResourceBindingNamespaceAnnotationKey,
		workv1alpha2.ResourceBindingNameAnnotationKey,
		workv1alpha2.ClusterResourceBindingAnnotationKey,
		workv1alpha2.ResourceConflictResolutionAnnotation,
		workv1alpha2.PullSecretsAnnotation,
		workv1alpha2.ResourceTemplateUIDAnnotation,
		workv1alpha2.ResourceTemplateGenerationAnnotationKey,
		workv1alpha2.ManagedAnnotation,
		workv1alpha2.ManagedLabels,
		policyv1alpha1.PropagationPolicyNamespaceAnnotation,
		policyv1alpha1.PropagationPolicyNameAnnotation,
		policyv1alpha1.ClusterPropagationPolicyAnnotation,
	}
)

// Unset returns the merge patch that removes our labels and annotations from the
// object with this UID, and from no other.
func Unset(uid types.UID) []byte {
	none := func(keys []string) map[string]any {
		out := map[string]any{}
		for _, key := range keys {
			out[key] = nil
		}
		return out
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": uid, "labels": none(ourLabels), "annotations": none(ourAnnotations),
	}})
	if err != nil {
		panic(err) // strings and nulls always encode
	}
	return data
}
