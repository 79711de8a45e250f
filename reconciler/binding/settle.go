package binding

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/scheduler"
)

// latest has the pass go on with the binding as this loop wrote it last, where the
// cache does not show it yet.
func (p writer) latest(_ context.Context, s *state) (loop.Next, error) {
	if s.binding != nil {
		s.binding, _ = p.own.Latest(s.key, s.binding, true)
	}
	return loop.Next{}, nil
}

// settle ends the eviction tasks of clusters that may be left now. What is left
// goes in the same pass; where the binding has changed meanwhile, its event brings
// it back.
func (p writer) settle(ctx context.Context, s *state) (loop.Next, error) {
	spec := s.binding.BindingSpec()
	if len(spec.GracefulEvictionTasks) == 0 {
		return loop.Next{}, nil
	}
	holds := func(cluster string) bool { return len(worksIn(s.works, cluster)) > 0 }
	tasks, ended := placement.Unfinished(spec, holds, func(cluster string) bool { return s.ready[cluster] })
	if len(ended) == 0 {
		return loop.Next{}, nil
	}
	desired := s.binding.DeepCopyObject().(workv1alpha2.Binding)
	desired.BindingSpec().GracefulEvictionTasks = tasks
	patch, some, err := bindings.Patch(s.binding, desired)
	if err == nil && some {
		err = p.hub.Patch(ctx, desired, patch)
	}
	switch {
	case bindings.IsStale(err):
		return loop.Next{Done: true}, joined(s.failed)
	case err != nil:
		return loop.Next{}, fmt.Errorf("end the eviction from %s: %w", strings.Join(ended, ", "), err)
	}
	p.own.Wrote(desired)
	s.binding = desired
	log.FromContext(ctx).Info("left clusters for others", "clusters", ended)
	message := "Left " + inWords(ended) + " for " + placement.Text(spec.Clusters)
	p.events.Event(scheduler.TemplateRef(desired), corev1.EventTypeNormal, workv1alpha2.EventReasonEvictWorkloadFromClusterSucceed, message)
	return loop.Next{}, nil
}

// moving says whether the binding of a Work is leaving a cluster for others.
func (r *Reconciler) moving(ctx context.Context, w *workv1alpha1.Work) bool {
	key, ok := bindings.OwnerOf(w)
	if !ok {
		return false
	}
	b := bindings.New(key.Namespace)
	if err := r.shelf.hub.Get(ctx, key, b, client.UnsafeDisableDeepCopy); err != nil {
		return client.IgnoreNotFound(err) != nil
	}
	for i := range b.BindingSpec().GracefulEvictionTasks {
		if placement.Moves(&b.BindingSpec().GracefulEvictionTasks[i]) {
			return true
		}
	}
	return false
}
