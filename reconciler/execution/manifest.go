package execution

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
)

// manifest is what a look at a Work needs to know of one of its manifests.
type manifest struct {
	ordinal int
	gvk     schema.GroupVersionKind
	key     types.NamespacedName
	hash    string
	err     error // why it cannot be carried
}

func parseManifest(ordinal int, raw []byte) manifest {
	m := manifest{ordinal: ordinal, hash: members.Hash(raw)}
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &object); err != nil {
		m.err = fmt.Errorf("manifest %d does not parse: %w", ordinal, err)
		return m
	}
	m.gvk = object.GroupVersionKind()
	m.key = types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	switch {
	case m.gvk.Kind == "" || m.gvk.Version == "":
		m.err = fmt.Errorf("manifest %d has no apiVersion or kind", ordinal)
	case m.key.Name == "":
		m.err = fmt.Errorf("manifest %d has no name: a name made by the member could be made twice", ordinal)
	}
	return m
}

// object returns the whole manifest.
func (m *manifest) object(work *workv1alpha1.Work) (*unstructured.Unstructured, error) {
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(work.Spec.Workload.Manifests[m.ordinal].Raw); err != nil {
		return nil, fmt.Errorf("manifest %d does not parse: %w", m.ordinal, err)
	}
	mark(out, client.ObjectKeyFromObject(work))
	return out, nil
}

// mark has an object say that it is managed, and by which Work. Manifests that
// Flotilla makes say so already, those that people write need not.
func mark(obj *unstructured.Unstructured, work client.ObjectKey) {
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

// title names the object as people do.
func (m *manifest) title() string {
	if m.key.Namespace == "" {
		return m.gvk.Kind + " " + m.key.Name
	}
	return m.gvk.Kind + " " + m.key.String()
}

// suspended says whether changes are kept from the member.
func suspended(work *workv1alpha1.Work) bool {
	return work.Spec.SuspendDispatching != nil && *work.Spec.SuspendDispatching
}

// reports says whether changes of others in the member are left there and told.
func reports(work *workv1alpha1.Work) bool {
	return work.Annotations[workv1alpha2.DriftAnnotation] == workv1alpha2.DriftReport
}

// overwrites says whether a manifest takes over an object that is in its way.
func overwrites(desired *unstructured.Unstructured) bool {
	return desired.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation] == workv1alpha2.ResourceConflictResolutionOverwrite
}
