package binding

import (
	"context"
	"fmt"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// bindingWriter writes annotations on the binding itself.
type bindingWriter struct {
	hub client.Writer
	own *writecache.Cache[workv1alpha2.Binding]
}

// useLastWrite continues the pass with the binding as this loop wrote it last, if the
// cache does not have that yet.
func (p bindingWriter) useLastWrite(_ context.Context, s *state) (loop.Next, error) {
	if s.binding != nil {
		s.binding, _ = p.own.Latest(s.key, s.binding, true)
	}
	return loop.Next{}, nil
}

// recordFaults records on the binding why clusters have no Work: there is no other object to record it on.
// Errors that may pass by themselves are not recorded, and do not clear what is recorded; nor does a pass in which nothing was rendered,
// but for what moves.
func (p bindingWriter) recordFaults(ctx context.Context, s *state) (loop.Next, error) {
	if s.held && !leaves(s.binding) {
		return loop.Next{}, nil
	}
	faults := propagation.ClusterFaults{}
	for _, f := range s.failed {
		switch {
		case f.cluster == "" || len(worksIn(s.works, f.cluster)) > 0:
		case needsPerson(f.err):
			faults[f.cluster] = f.err.Error()
		default:
			return loop.Next{}, nil
		}
	}
	text := faults.Text()
	if s.binding.GetAnnotations()[propagation.ClusterFaultsAnnotation] == text {
		return loop.Next{}, nil
	}
	desired := s.binding.DeepCopyObject().(workv1alpha2.Binding)
	annotations := maps.Clone(desired.GetAnnotations())
	if delete(annotations, propagation.ClusterFaultsAnnotation); text != "" {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[propagation.ClusterFaultsAnnotation] = text
	}
	desired.SetAnnotations(annotations)
	patch, some, err := bindings.Patch(s.binding, desired)
	if err != nil || !some {
		return loop.Next{}, err
	}
	switch err := p.hub.Patch(ctx, desired, patch); {
	case err == nil:
		p.own.Wrote(desired)
		s.binding = desired
		log.FromContext(ctx).Info("noted why clusters have no Work", "clusters", len(faults))
	case !bindings.IsStale(err):
		return loop.Next{}, fmt.Errorf("note why clusters have no Work: %w", err)
	}
	return loop.Next{}, nil
}
