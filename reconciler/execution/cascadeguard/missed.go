package cascadeguard

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/internal/contents"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/cascade"
)

// Member reads a member cluster.
type Member interface {
	contents.Server
	Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error)
}

var _ Member = (*members.Member)(nil)

// missed names what would be lost if a Namespace, or a CustomResourceDefinition,
// were deleted: at most one more than cascade.Most. leaves reports what is deleted anyway. If anything
// cannot be read it returns an error, as it may be lost, too.
func missed(ctx context.Context, m Member, gvk schema.GroupVersionKind, key types.NamespacedName, leaves func(schema.GroupKind, metav1.Object) bool) ([]string, error) {
	what := contents.Search{Most: cascade.Most + 1, Leaves: leaves}
	switch kind := gvk.GroupKind(); {
	case kind == schema.GroupKind{Kind: "Namespace"}:
		return contents.InNamespace(ctx, m, key.Name, what)
	case Defines(kind):
		crd, err := m.Get(ctx, gvk, key)
		if err != nil {
			return nil, err
		}
		return contents.OfKind(ctx, m, crd, what)
	default:
		return nil, nil
	}
}

// Left names the objects of a kind that are still in a member while their definition is being deleted there, each
// with what keeps it: at most one more than cascade.Most. It returns none for
// other kinds, and if they cannot be read.
func Left(ctx context.Context, edge any, crd *unstructured.Unstructured) []string {
	m, ok := edge.(Member)
	if !ok || !Defines(crd.GroupVersionKind().GroupKind()) {
		return nil
	}
	left, err := contents.Blocked(ctx, m, crd, cascade.Most+1)
	if err != nil {
		return nil
	}
	return left
}

// Defines reports whether objects of a kind define kinds.
func Defines(kind schema.GroupKind) bool { return contents.Defines(kind) }
