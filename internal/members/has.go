package members

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

// ErrLeaves says that an object is there, and on its way out.
var ErrLeaves = errors.New("it is being deleted there")

// HasWork asks the member of a cluster itself, past all that watches have shown, whether it
// has every object of a Work: a watch may be silent or refused, and nobody the wiser. A nil
// error means that it has. Known is false, and nothing asked, for a cluster that is not
// connected here, as one in pull mode. Errors: what the member answered, or
// ErrLeaves.
func (r *Registry) HasWork(ctx context.Context, cluster string, work *workv1alpha1.Work) (known bool, err error) {
	m, known := r.Get(cluster)
	if !known {
		return false, nil
	}
	for i := range work.Spec.Workload.Manifests {
		if err := hasObject(ctx, m, client.ObjectKeyFromObject(work), work.Spec.Workload.Manifests[i].Raw); err != nil {
			return true, err
		}
	}
	return true, nil
}

// hasObject asks a member for one object of a Work.
func hasObject(ctx context.Context, m *Member, work types.NamespacedName, manifest []byte) error {
	desired := &unstructured.Unstructured{}
	if err := desired.UnmarshalJSON(manifest); err != nil {
		return fmt.Errorf("read a manifest of Work %s: %w", work, err)
	}
	gvk := desired.GroupVersionKind()
	live, err := m.Get(ctx, gvk, client.ObjectKeyFromObject(desired))
	if _, presence := m.Read(gvk, client.ObjectKeyFromObject(desired)); apierrors.IsNotFound(err) && presence == Present {
		m.informer.Reinterpret(func(kind schema.GroupVersionKind) bool { return kind == gvk }) // its watch has missed that: all is read anew
	}
	switch {
	case err != nil:
		return fmt.Errorf("ask %s for %s %s: %w", m.name, desired.GetKind(), client.ObjectKeyFromObject(desired), err)
	case live.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s %s in %s: %w", desired.GetKind(), client.ObjectKeyFromObject(desired), m.name, ErrLeaves)
	}
	return nil
}
