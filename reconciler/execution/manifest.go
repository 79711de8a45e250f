package execution

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/execution/marks"
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
	id, err := identify(raw)
	if err != nil {
		m.err = fmt.Errorf("manifest %d does not parse: %w", ordinal, err)
		return m
	}
	m.gvk, m.key = id.gvk, id.key
	switch {
	case m.gvk.Kind == "" || m.gvk.Version == "":
		m.err = fmt.Errorf("manifest %d has no apiVersion or kind", ordinal)
	case m.key.Name == "":
		m.err = fmt.Errorf("manifest %d has no name: a name made by the member could be made twice", ordinal)
	}
	return m
}

// names are what an object is known by.
type names struct {
	gvk schema.GroupVersionKind
	key types.NamespacedName
}

// identify reads what an object is known by as object does, without the rest: the
// case of fields counts, and the last of several with one name.
func identify(raw []byte) (names, error) {
	var object struct {
		APIVersion *string         `json:"apiVersion"`
		Kind       *string         `json:"kind"`
		Metadata   json.RawMessage `json:"metadata"`
	}
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		return names{}, err
	}
	var named struct {
		Namespace *string `json:"namespace"`
		Name      *string `json:"name"`
	}
	if len(object.Metadata) > 0 {
		if err := utiljson.Unmarshal(object.Metadata, &named); err != nil {
			return names{}, fmt.Errorf("metadata: %w", err)
		}
	}
	return names{
		gvk: schema.FromAPIVersionAndKind(ptr.Deref(object.APIVersion, ""), ptr.Deref(object.Kind, "")),
		key: types.NamespacedName{Namespace: ptr.Deref(named.Namespace, ""), Name: ptr.Deref(named.Name, "")},
	}, nil
}

// object returns the whole manifest.
func (m *manifest) object(work *workv1alpha1.Work) (*unstructured.Unstructured, error) {
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(work.Spec.Workload.Manifests[m.ordinal].Raw); err != nil {
		return nil, fmt.Errorf("manifest %d does not parse: %w", m.ordinal, err)
	}
	if out.GroupVersionKind() != m.gvk || client.ObjectKeyFromObject(out) != m.key {
		return nil, fmt.Errorf("manifest %d can be read as %s and as another object: write each of its fields once", m.ordinal, m.title())
	}
	marks.Set(out, client.ObjectKeyFromObject(work))
	return out, nil
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
