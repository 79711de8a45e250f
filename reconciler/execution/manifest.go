package execution

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/execution/ownermeta"
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
	id, err := ownermeta.Identify(raw)
	if err != nil {
		m.err = fmt.Errorf("manifest %d does not parse: %w", ordinal, err)
		return m
	}
	m.gvk, m.key = id.Kind, id.Key
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
	if out.GroupVersionKind() != m.gvk || client.ObjectKeyFromObject(out) != m.key {
		return nil, fmt.Errorf("manifest %d can be read as %s and as another object: write each of its fields once", m.ordinal, m.title())
	}
	ownermeta.Set(out, client.ObjectKeyFromObject(work))
	return out, nil
}

// title names the object as people do.
func (m *manifest) title() string {
	if m.key.Namespace == "" {
		return m.gvk.Kind + " " + m.key.Name
	}
	return m.gvk.Kind + " " + m.key.String()
}

// suspended reports whether changes are kept from the member.
func suspended(work *workv1alpha1.Work) bool {
	return work.Spec.SuspendDispatching != nil && *work.Spec.SuspendDispatching
}

// reports reports whether changes of others in the member are left there and told.
func reports(work *workv1alpha1.Work) bool {
	return work.Annotations[workv1alpha2.DriftAnnotation] == workv1alpha2.DriftReport
}

// overwrites reports whether a manifest takes over an object that is in its way.
func overwrites(desired *unstructured.Unstructured) bool {
	return desired.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation] == workv1alpha2.ResourceConflictResolutionOverwrite
}
