package template

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// reader reads the template and its binding.
type reader struct {
	template func(ctx context.Context, key templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error)
	binding  func(ctx context.Context, key client.ObjectKey) (workv1alpha2.Binding, bool, error)
}

// run reads the template and its binding. It ends the pass if the template is not known: nothing may
// be concluded then, and the store announces it once its kind is completely listed.
func (p reader) run(ctx context.Context, s *state) (loop.Next, error) {
	obj, presence, err := p.template(ctx, s.key)
	if err != nil || presence == templatestore.Unknown {
		return loop.Next{Done: true}, err
	}
	if presence == templatestore.Present {
		s.template = obj
	}
	b, found, err := p.binding(ctx, bindings.KeyOf(s.key))
	if found {
		s.binding = b
	}
	return loop.Next{}, err
}
