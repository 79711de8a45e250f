package plan

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// identity is the metadata that a manifest carries in addition to its own.
type identity struct {
	labels, annotations map[string]string
}

// mark turns obj, a copy of the template, into the manifest of a Work: pruned,
// labelled as managed, annotated with where it comes from, and with the record
// of which labels and annotations are ours.
func mark(obj *unstructured.Unstructured, id identity) {
	annotations := mapOf(obj.GetAnnotations())
	annotations[workv1alpha2.ResourceTemplateUIDAnnotation] = string(obj.GetUID())
	if g := obj.GetGeneration(); g > 0 {
		annotations[workv1alpha2.ResourceTemplateGenerationAnnotationKey] = strconv.FormatInt(g, 10)
	}
	maps.Copy(annotations, id.annotations)
	labels := mapOf(obj.GetLabels())
	labels[workv1alpha2.ManagedByKarmadaLabel] = workv1alpha2.ManagedByKarmadaLabelValue
	maps.Copy(labels, id.labels)
	obj.SetAnnotations(annotations)
	obj.SetLabels(labels)
	Prune(obj)
	record(obj)
}

// record notes which labels and annotations are ours, so that those which are
// ours no longer can be told from those of the member.
func record(obj *unstructured.Unstructured) {
	annotations := mapOf(obj.GetAnnotations())
	annotations[workv1alpha2.ManagedAnnotation], annotations[workv1alpha2.ManagedLabels] = "", ""
	annotations[workv1alpha2.ManagedAnnotation] = keysOf(annotations)
	annotations[workv1alpha2.ManagedLabels] = keysOf(obj.GetLabels())
	obj.SetAnnotations(annotations)
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

// encode returns the manifest in its one canonical form: JSON with sorted keys.
func encode(obj *unstructured.Unstructured) (workv1alpha1.Manifest, error) {
	data, err := json.Marshal(obj.Object)
	if err != nil {
		return workv1alpha1.Manifest{}, err
	}
	return workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: data}}, nil
}
