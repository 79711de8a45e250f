package dependency

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// userWriter writes the bindings of templates that need others.
type userWriter struct {
	hub     client.Client
	written *writecache.Cache[workv1alpha2.Binding]
}

// write writes what the phases decided about the binding, if anything of it has changed,
// and returns when to look again.
func (w *userWriter) write(ctx context.Context, s *use) (loop.Next, error) {
	if s.over {
		return loop.Next{}, w.release(ctx, s.binding)
	}
	if s.desired == nil {
		return loop.Next{}, nil
	}
	patch, some, err := bindings.Patch(s.binding, s.desired)
	if err != nil || !some {
		return loop.Next{}, err
	}
	switch err := w.hub.Patch(ctx, s.desired, patch); {
	case err != nil && bindings.IsStale(err):
		return loop.Next{After: behind}, nil
	case err != nil:
		return loop.Next{}, fmt.Errorf("note what the template refers to: %w", err)
	}
	w.written.Wrote(s.desired)
	log.FromContext(ctx).Info("noted what a template refers to", "binding", s.key)
	return loop.Next{}, nil
}

// release removes the finalizer of a binding that is being deleted.
func (w *userWriter) release(ctx context.Context, b workv1alpha2.Binding) error {
	patch, has := bindings.WithoutFinalizer(b, workv1alpha2.BindingDependenciesDistributorFinalizer)
	if !has {
		return nil
	}
	switch err := w.hub.Patch(ctx, b.DeepCopyObject().(client.Object), patch); {
	case err == nil:
		w.written.Deleted(b)
	case !bindings.IsStale(err):
		return fmt.Errorf("let the binding go: %w", err)
	}
	return nil
}
