package scheduler

import (
	"context"
	"fmt"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Register adds the loop to mgr. The decider has to be registered separately.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	c, err := controller.New("scheduler", mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: r.opts.Workers,
		NewQueue:                fairqueue.ByNamespace(r.opts.Workers),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	})
	if err != nil {
		return fmt.Errorf("set up the scheduler: %w", err)
	}
	for _, kind := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
		if err := c.Watch(source.Kind(mgr.GetCache(), kind, r.wakes.bindingEvents(), decisive())); err != nil {
			return fmt.Errorf("watch bindings: %w", err)
		}
	}
	if err := c.Watch(source.Kind(mgr.GetCache(), &clusterv1alpha1.Cluster{}, r.wakes.clusterEvents())); err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	quotas := source.Kind(mgr.GetCache(), &policyv1alpha1.FederatedResourceQuota{}, r.wakes.quotaEvents(),
		predicate.TypedGenerationChangedPredicate[*policyv1alpha1.FederatedResourceQuota]{})
	if err := c.Watch(quotas); err != nil {
		return fmt.Errorf("watch quotas: %w", err)
	}
	if err := c.Watch(&r.wakes.woken); err != nil {
		return fmt.Errorf("watch what waiting bindings wait for: %w", err)
	}
	slowed := &slowedConditions{hub: r.hub, clock: r.opts.Clock, limiter: r.rate, reported: map[string]report{}}
	if err := mgr.Add(manager.RunnableFunc(slowed.run)); err != nil {
		return fmt.Errorf("add what clusters say of how they are left: %w", err)
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		r.decider.Lead()
		r.decider.Unschedulable().Run(ctx, r.opts.Clock, r.wakes.wake)
		return nil
	}))
}
