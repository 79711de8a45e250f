package manifest

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/execution/ownermeta"
)

// Manifest is what a pass over a Work needs to know of one of its manifests.
type Manifest struct {
	// Ordinal is its place in the Work.
	Ordinal int
	// GVK and Key identify its object.
	GVK schema.GroupVersionKind
	Key types.NamespacedName
	// Hash is that of the whole manifest.
	Hash string
	// Err is why it cannot be applied; nil if it can.
	Err error
}

// Parse parses the manifest with the given ordinal. Errors are in its Err.
func Parse(ordinal int, raw []byte) Manifest {
	m := Manifest{Ordinal: ordinal, Hash: members.Hash(raw)}
	id, err := ownermeta.Identify(raw)
	if err != nil {
		m.Err = fmt.Errorf("manifest %d does not parse: %w", ordinal, err)
		return m
	}
	m.GVK, m.Key = id.Kind, id.Key
	switch {
	case m.GVK.Kind == "" || m.GVK.Version == "":
		m.Err = fmt.Errorf("manifest %d has no apiVersion or kind", ordinal)
	case m.Key.Name == "":
		m.Err = fmt.Errorf("manifest %d has no name: a name made by the member could be made twice", ordinal)
	}
	return m
}

// formerly returns the manifest that an entry of a Work's status was about.
func formerly(id *workv1alpha1.ResourceIdentifier) Manifest {
	return Manifest{
		Ordinal: id.Ordinal,
		GVK:     schema.GroupVersionKind{Group: id.Group, Version: id.Version, Kind: id.Kind},
		Key:     types.NamespacedName{Namespace: id.Namespace, Name: id.Name},
	}
}

// Object returns the whole manifest, with the metadata that names the Work as its owner.
func (m *Manifest) Object(work *workv1alpha1.Work) (*unstructured.Unstructured, error) {
	out := &unstructured.Unstructured{}
	if m.Ordinal >= len(work.Spec.Workload.Manifests) { // a former manifest
		return nil, fmt.Errorf("manifest %d is not there any more", m.Ordinal)
	}
	if err := out.UnmarshalJSON(work.Spec.Workload.Manifests[m.Ordinal].Raw); err != nil {
		return nil, fmt.Errorf("manifest %d does not parse: %w", m.Ordinal, err)
	}
	if out.GroupVersionKind() != m.GVK || client.ObjectKeyFromObject(out) != m.Key {
		return nil, fmt.Errorf("manifest %d can be read as %s and as another object: write each of its fields once", m.Ordinal, m.Title())
	}
	ownermeta.Set(out, client.ObjectKeyFromObject(work))
	return out, nil
}

// Title returns the name of the object for people.
func (m *Manifest) Title() string {
	if m.Key.Namespace == "" {
		return m.GVK.Kind + " " + m.Key.Name
	}
	return m.GVK.Kind + " " + m.Key.String()
}

// Same reports whether another manifest is about the same object.
func (m *Manifest) Same(other Manifest) bool {
	return other.Err == nil && m.Key == other.Key && m.GVK.GroupKind() == other.GVK.GroupKind()
}

// Identifier returns the name of the object in the Work's status.
func (m *Manifest) Identifier() workv1alpha1.ResourceIdentifier {
	return workv1alpha1.ResourceIdentifier{
		Ordinal:   m.Ordinal,
		Group:     m.GVK.Group,
		Version:   m.GVK.Version,
		Kind:      m.GVK.Kind,
		Namespace: m.Key.Namespace,
		Name:      m.Key.Name,
	}
}

// Replaces reports whether the Work's status has another object with the manifest's ordinal: the record of
// what was applied is then about that one.
func (m *Manifest) Replaces(work *workv1alpha1.Work) bool {
	return slices.ContainsFunc(work.Status.ManifestStatuses, func(s workv1alpha1.ManifestStatus) bool {
		return s.Identifier.Ordinal == m.Ordinal && !m.Same(formerly(&s.Identifier))
	})
}

// Template returns the metadata of the manifest's template that an event needs; nil if the
// manifest does not have its UID.
func (m *Manifest) Template(work *workv1alpha1.Work) *metav1.PartialObjectMetadata {
	obj, err := m.Object(work)
	uid := ""
	if err == nil {
		uid = obj.GetAnnotations()[workv1alpha2.ResourceTemplateUIDAnnotation]
	}
	if uid == "" {
		return nil
	}
	out := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: m.Key.Namespace, Name: m.Key.Name, UID: types.UID(uid)}}
	out.SetGroupVersionKind(m.GVK)
	return out
}
