package omissions

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// written are the labels and annotations of templates, and of their copies in clusters, that the control plane alone writes.
func written() (labels, annotations []string) {
	return []string{
			policyv1alpha1.PropagationPolicyPermanentIDLabel, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel,
			workv1alpha2.ResourceBindingPermanentIDLabel, workv1alpha2.ClusterResourceBindingPermanentIDLabel, workv1alpha2.WorkPermanentIDLabel,
		}, []string{
			policyv1alpha1.PropagationPolicyNamespaceAnnotation, policyv1alpha1.PropagationPolicyNameAnnotation, policyv1alpha1.ClusterPropagationPolicyAnnotation,
			policyv1alpha1.PolicyPlacementAnnotation, policyv1alpha1.AppliedOverrides, policyv1alpha1.AppliedClusterOverrides,
			workv1alpha2.ResourceBindingNamespaceAnnotationKey, workv1alpha2.ResourceBindingNameAnnotationKey, workv1alpha2.ClusterResourceBindingAnnotationKey,
			workv1alpha2.WorkNamespaceAnnotation, workv1alpha2.WorkNameAnnotation, workv1alpha2.HubAnnotation,
			workv1alpha2.ResourceTemplateUIDAnnotation, workv1alpha2.ResourceTemplateGenerationAnnotationKey,
			workv1alpha2.ManagedAnnotation, workv1alpha2.ManagedLabels, workv1alpha2.PullSecretsAnnotation,
			workv1alpha2.AppliedByAnnotation, propagation.WaitsAnnotation,
		}
}

// ours are the kinds that are no templates: what they carry is theirs, such as the id of a policy.
func ours(apiVersion string) bool {
	group := schema.FromAPIVersionAndKind(apiVersion, "").Group
	for _, suffix := range []string{".karmada.io", ".flotilla.io", ".toolkit.fluxcd.io"} {
		if strings.HasSuffix(group, suffix) {
			return true
		}
	}
	return false
}

// reservedMetadata returns the labels and annotations of a manifest that the control plane alone writes.
func reservedMetadata(manifest map[string]any) []Omission {
	apiVersion, _ := manifest["apiVersion"].(string)
	if ours(apiVersion) {
		return nil
	}
	var out []Omission
	labels, annotations := written()
	for _, key := range labels {
		out = appendReserved(out, manifest, "labels", key, "the control plane alone writes it; remove it from the files")
	}
	for _, key := range annotations {
		out = appendReserved(out, manifest, "annotations", key, "the control plane alone writes it; remove it from the files")
	}
	if manifest["type"] == string(corev1.SecretTypeServiceAccountToken) {
		out = appendReserved(out, manifest, "annotations", corev1.ServiceAccountUIDKey, "it is of an account of another cluster, and a Secret of an account that is not there is deleted; remove it from the files")
	}
	return out
}

// appendReserved adds a label or annotation that a manifest has.
func appendReserved(out []Omission, manifest map[string]any, field, key, why string) []Omission {
	metadata, _ := manifest["metadata"].(map[string]any)
	entries, _ := metadata[field].(map[string]any)
	if _, has := entries[key]; !has {
		return out
	}
	return append(out, Omission{Path: "metadata." + field + "[" + key + "]", Why: why, within: []string{"metadata", field, key}})
}
