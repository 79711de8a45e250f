package plan

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// identity is the metadata that a manifest carries in addition to its own.
type identity struct {
	labels, annotations map[string]string
}

// The labels and annotations by which an object in a member names its owner. What
// a template has under these keys is left out: its author may not set them.
var (
	ownLabels = []string{
		workv1alpha2.ManagedByKarmadaLabel, workv1alpha2.WorkPermanentIDLabel,
		workv1alpha2.ResourceBindingPermanentIDLabel, workv1alpha2.ClusterResourceBindingPermanentIDLabel,
	}
	ownAnnotations = []string{
		workv1alpha2.WorkNamespaceAnnotation, workv1alpha2.WorkNameAnnotation, workv1alpha2.HubAnnotation,
		workv1alpha2.ResourceBindingNamespaceAnnotationKey, workv1alpha2.ResourceBindingNameAnnotationKey,
		workv1alpha2.ClusterResourceBindingAnnotationKey, workv1alpha2.PullSecretsAnnotation,
		workv1alpha2.ResourceTemplateUIDAnnotation, workv1alpha2.ResourceTemplateGenerationAnnotationKey,
		workv1alpha2.ManagedAnnotation, workv1alpha2.ManagedLabels,
	}
)

// stamp turns obj, a copy of the template, into the manifest of a Work: pruned,
// labelled as managed, annotated with where it comes from, and with the record
// of which labels and annotations are ours.
func stamp(obj *unstructured.Unstructured, id identity) {
	annotations := mapOf(obj.GetAnnotations())
	for _, key := range ownAnnotations {
		delete(annotations, key)
	}
	annotations[workv1alpha2.ResourceTemplateUIDAnnotation] = string(obj.GetUID())
	if g := obj.GetGeneration(); g > 0 {
		annotations[workv1alpha2.ResourceTemplateGenerationAnnotationKey] = strconv.FormatInt(g, 10)
	}
	maps.Copy(annotations, id.annotations)
	labels := mapOf(obj.GetLabels())
	for _, key := range ownLabels {
		delete(labels, key)
	}
	labels[workv1alpha2.ManagedByKarmadaLabel] = workv1alpha2.ManagedByKarmadaLabelValue
	maps.Copy(labels, id.labels)
	obj.SetAnnotations(annotations)
	obj.SetLabels(labels)
	Prune(obj)
	record(obj)
}

// recordSecrets annotates a manifest that contains text of a Secret as its template is annotated, or, where an override has put
// some into it, by its fields. No override takes the mark away.
func recordSecrets(manifest, template *unstructured.Unstructured, overridden bool) {
	stamp := template.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation]
	if stamp == "" && overridden {
		stamp = gitopsv1alpha1.HoldsInFields
	}
	if stamp == "" {
		return
	}
	annotations := mapOf(manifest.GetAnnotations())
	annotations[gitopsv1alpha1.HoldsSecretsAnnotation] = stamp
	manifest.SetAnnotations(annotations)
}

// Carried returns what of a manifest gets into a cluster, before it is marked there: a copy
// without what belongs to the server, and without what the fleet says by itself.
func Carried(manifest *unstructured.Unstructured) *unstructured.Unstructured {
	out := manifest.DeepCopy()
	for _, key := range ownLabels {
		removeKey(out.Object, key, "metadata", "labels")
	}
	for _, key := range append([]string{workv1alpha2.ResourceConflictResolutionAnnotation}, ownAnnotations...) {
		removeKey(out.Object, key, "metadata", "annotations")
	}
	Prune(out)
	return out
}

// record lists which labels and annotations are ours, so that those which are
// ours can no longer be distinguished from those of the member.
func record(obj *unstructured.Unstructured) {
	annotations := mapOf(obj.GetAnnotations())
	if names := pullSecrets(obj); names != "" {
		annotations[workv1alpha2.PullSecretsAnnotation] = names
	}
	annotations[workv1alpha2.ManagedAnnotation], annotations[workv1alpha2.ManagedLabels] = "", ""
	annotations[workv1alpha2.ManagedAnnotation] = keysOf(annotations)
	annotations[workv1alpha2.ManagedLabels] = keysOf(obj.GetLabels())
	obj.SetAnnotations(annotations)
}

// pullSecrets names the image pull secrets of a service account. They can only
// be applied as a whole list: without the record it would not be known who added which.
func pullSecrets(obj *unstructured.Unstructured) string {
	if obj.GetAPIVersion() != "v1" || obj.GetKind() != "ServiceAccount" {
		return ""
	}
	refs, _ := obj.Object["imagePullSecrets"].([]any)
	var names []string
	for _, e := range refs {
		ref, _ := e.(map[string]any)
		if name, _ := ref["name"].(string); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

func mapOf(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func keysOf(m map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ",")
}

// Prepare brings the manifest of a Work into the form in which it is sent:
// pruned, labelled with the Work's permanent id, and with the record of which
// labels and annotations are ours. Preparing twice is preparing once.
func Prepare(manifest *unstructured.Unstructured, workID string) {
	Prune(manifest)
	labels := mapOf(manifest.GetLabels())
	labels[workv1alpha2.WorkPermanentIDLabel] = workID
	manifest.SetLabels(labels)
	record(manifest)
}

// Same reports whether have needs no write to become want: its
// spec is equal, and it has the owners, labels, annotations and finalizers that
// want names. It may have more, but no stale record of overrides, of a fault, of
// what happens to drift, or of who applied it.
func Same(want, have *workv1alpha1.Work) bool {
	return contains(have.Labels, want.Labels) && contains(have.Annotations, want.Annotations) &&
		sameRecord(want, have, policyv1alpha1.AppliedOverrides) &&
		sameRecord(want, have, policyv1alpha1.AppliedClusterOverrides) &&
		sameRecord(want, have, propagation.FaultAnnotation) &&
		sameRecord(want, have, workv1alpha2.DriftAnnotation) &&
		sameRecord(want, have, workv1alpha2.AppliedByAnnotation) &&
		sameRecord(want, have, workv1alpha2.LeavesFirstAnnotation) &&
		!slices.ContainsFunc(want.Finalizers, func(f string) bool { return !slices.Contains(have.Finalizers, f) }) &&
		(len(want.OwnerReferences) == 0 || equality.Semantic.DeepEqual(want.OwnerReferences, have.OwnerReferences)) &&
		ptr.Equal(want.Spec.SuspendDispatching, have.Spec.SuspendDispatching) &&
		ptr.Equal(want.Spec.PreserveResourcesOnDeletion, have.Spec.PreserveResourcesOnDeletion) &&
		slices.EqualFunc(want.Spec.Workload.Manifests, have.Spec.Workload.Manifests, sameManifest)
}

func sameRecord(a, b *workv1alpha1.Work, key string) bool {
	return a.Annotations[key] == b.Annotations[key]
}

func contains(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// sameManifest compares bytes first, and then contents: servers may order keys differently.
func sameManifest(a, b workv1alpha1.Manifest) bool {
	if bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	var x, y unstructured.Unstructured
	return x.UnmarshalJSON(a.Raw) == nil && y.UnmarshalJSON(b.Raw) == nil && SameObject(&x, &y)
}

// SameObject reports whether the contents of two objects are equal.
func SameObject(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(a.Object, b.Object)
}

// Encode returns the manifest in its one canonical form: JSON with sorted keys.
func Encode(obj *unstructured.Unstructured) (workv1alpha1.Manifest, error) {
	data, err := json.Marshal(obj.Object)
	if err != nil {
		return workv1alpha1.Manifest{}, err
	}
	return workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: data}}, nil
}
