package quota

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/quota"
)

// ofShare names the quota of which a Work brings a share.
func ofShare(_ context.Context, obj client.Object) []reconcile.Request {
	if work, ok := obj.(*workv1alpha1.Work); ok {
		if key, is := plan.ShareOf(work); is {
			return []reconcile.Request{{NamespacedName: key}}
		}
	}
	return nil
}

// shareChanges passes on what clusters say of shares anew. What a start finds comes with all
// quotas.
func shareChanges() predicate.Predicate {
	says := func(obj client.Object) ([]workv1alpha1.ManifestStatus, bool) {
		work, ok := obj.(*workv1alpha1.Work)
		if !ok {
			return nil, false
		}
		_, is := plan.ShareOf(work)
		return work.Status.ManifestStatuses, is
	}
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, was := says(e.ObjectOld)
			now, is := says(e.ObjectNew)
			return was != is || is && !apiequality.Semantic.DeepEqual(before, now)
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			_, is := says(e.Object)
			return is
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// gather reads what clusters say of their shares. It ends the pass where the status says all
// of that, and what is counted, already.
func (r *Reconciler) gather(ctx context.Context, s *state) (loop.Next, error) {
	works := map[string]*workv1alpha1.Work{}
	for cluster := range quota.Shares(s.limit) {
		work := &workv1alpha1.Work{}
		key := client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: plan.ShareName(s.key)}
		err := r.hub.Get(ctx, key, work, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return loop.Next{}, fmt.Errorf("read the share of cluster %s: %w", cluster, err)
		}
		if owner, is := plan.ShareOf(work); err == nil && is && owner == s.key {
			works[cluster] = work
		}
	}
	reported, err := quota.Aggregated(s.limit, works)
	switch {
	case err == nil:
		r.unread.Forget(s.key)
	case r.unread.Record(s.key, err.Error()): // the others are written all the same
		r.events.Event(s.limit, corev1.EventTypeWarning, workv1alpha2.EventReasonAggregateStatusFailed, err.Error())
		log.FromContext(ctx).Info("Cannot read what a cluster says of its share", "cause", err.Error())
	}
	s.figures.AggregatedStatus = reported
	return loop.Next{Done: apiequality.Semantic.DeepEqual(s.limit.Status, s.figures)}, nil
}
