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

// Manifest is what a look at a Work needs to know of one of its manifests.
type Manifest struct {
	// Ordinal is its place in the Work.
	Ordinal int
	// GVK and Key are what its object is known by.
	GVK schema.GroupVersionKind
	Key types.NamespacedName
	// Hash is of all that it says.
	Hash string
	// Err is why it cannot be carried.
	Err error
}

// Parse reads the manifest of a place. What is wrong with it is its Err.
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

// Formerly returns the manifest that an entry of a Work's status was about.
func Formerly(id *workv1alpha1.ResourceIdentifier) Manifest {
	return Manifest{
		Ordinal: id.Ordinal,
		GVK:     schema.GroupVersionKind{Group: id.Group, Version: id.Version, Kind: id.Kind},
		Key:     types.NamespacedName{Namespace: id.Namespace, Name: id.Name},
	}
}

// Object returns the whole manifest, which says that it is the Work's.
func (m *Manifest) Object(work *workv1alpha1.Work) (*unstructured.Unstructured, error) {
	out := &unstructured.Unstructured{}
	if m.Ordinal >= len(work.Spec.Workload.Manifests) { // what was asked for once
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

// Title names the object as people do.
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

// Identifier is how the Work's status names the object.
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

// Replaces reports whether an entry of the Work's status says that another object had the
// manifest's place: the record of what was applied is about that.
func (m *Manifest) Replaces(work *workv1alpha1.Work) bool {
	return slices.ContainsFunc(work.Status.ManifestStatuses, func(s workv1alpha1.ManifestStatus) bool {
		return s.Identifier.Ordinal == m.Ordinal && !m.Same(Formerly(&s.Identifier))
	})
}

// Template returns what an Event needs to know of the manifest's template; nil if the
// manifest does not say.
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
