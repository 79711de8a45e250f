package quotashare

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/quota"
	"github.com/flotilla-io/flotilla/reconciler/dedup"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Options tune the loop. The zero value is what production uses.
type Options struct {
	// Skip are the namespaces that stay on the hub besides the control plane's;
	// nil means propagation.DefaultSkipRules.
	Skip *propagation.SkipRules
	// Clock is the time; nil means the machine's.
	Clock clock.PassiveClock
}

// When to look again: after somebody else wrote meanwhile, and at what stands until somebody
// acts who may not be heard of.
const (
	conflictRetry = 100 * time.Millisecond
	recheckPeriod = 5 * time.Minute
)

// Reconciler writes the Works that bring shares.
type Reconciler struct {
	hub      client.Client
	events   loop.Recorder
	skip     propagation.SkipRules
	works    works
	reported dedup.Messages[client.ObjectKey] // faults, by quota
}

// New returns the loop.
func New(hub client.Client, events loop.Recorder, o Options) *Reconciler {
	skip := propagation.DefaultSkipRules()
	if o.Skip != nil {
		skip = *o.Skip
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Reconciler{hub: hub, events: events, skip: skip, works: works{hub: hub, wrote: writecache.New[*workv1alpha1.Work](o.Clock)}}
}

// Register adds the loop to mgr.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("quotashare").
		WithOptions(controller.Options{NewQueue: fairqueue.ByNamespace(1)}).
		For(&policyv1alpha1.FederatedResourceQuota{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), builder.WithPredicates(arrivals())).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.ofSpace), builder.WithPredicates(arrivals())).
		Watches(&workv1alpha2.ResourceBinding{}, handler.EnqueueRequestsFromMapFunc(besideBinding), builder.WithPredicates(predicate.GenerationChangedPredicate{}, besides())).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(ofWork), builder.WithPredicates(r.works.changes())).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register the loop of quota shares: %w", err)
	}
	return nil
}

// state is what the phases hand on.
type state struct {
	key client.ObjectKey
	// quota as it is stored; shared. Nil: it is gone, or is going.
	quota *policyv1alpha1.FederatedResourceQuota
	// known are the names of all clusters.
	known sets.Set[string]
	// open are the clusters that have room for Works; shared.
	open []*clusterv1alpha1.Cluster
	// beside is the binding of a ResourceQuota of the same name; shared. Nil: there is none.
	beside *workv1alpha2.ResourceBinding
	plans  []plan.WorkPlan
	// faults are why shares are not as planned.
	faults []fault
}

// fault is why shares are not as they should be.
type fault struct {
	err error
	// recheckPeriod is true where trying again mends nothing: what does is heard of.
	recheckPeriod bool
}

// Reconcile makes the Works of one quota's shares what they should be.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s := state{key: req.NamespacedName}
	next, err := loop.Run(ctx, &s, r.read, r.listClusters, r.decide, r.apply, r.prune, r.report)
	return loop.Result(next, err)
}

// read finds the quota. One that is being deleted has no shares any more.
func (r *Reconciler) read(ctx context.Context, s *state) (loop.Next, error) {
	found := &policyv1alpha1.FederatedResourceQuota{}
	err := r.hub.Get(ctx, s.key, found, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return loop.Next{}, fmt.Errorf("read the quota: %w", err)
	}
	if err == nil && found.DeletionTimestamp.IsZero() {
		s.quota = found
	}
	return loop.Next{}, nil
}

// listClusters finds the clusters that have room for Works: those that have joined and are not
// leaving, whose Works go with them. And it finds what has precedence.
func (r *Reconciler) listClusters(ctx context.Context, s *state) (loop.Next, error) {
	var clusters clusterv1alpha1.ClusterList
	if err := r.hub.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return loop.Next{}, fmt.Errorf("list clusters: %w", err)
	}
	s.known = sets.New[string]()
	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		s.known.Insert(cluster.Name)
		if !cluster.DeletionTimestamp.IsZero() {
			continue
		}
		space := &corev1.Namespace{}
		err := r.hub.Get(ctx, client.ObjectKey{Name: workv1alpha2.ExecutionNamespace(cluster.Name)}, space, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return loop.Next{}, fmt.Errorf("read the execution namespace of cluster %s: %w", cluster.Name, err)
		}
		if err == nil && space.DeletionTimestamp.IsZero() {
			s.open = append(s.open, cluster)
		}
	}
	beside := &workv1alpha2.ResourceBinding{}
	err := r.hub.Get(ctx, plan.ShareBinding(s.key), beside, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return loop.Next{}, fmt.Errorf("read the binding of a ResourceQuota: %w", err)
	}
	if err == nil {
		s.beside = beside
	}
	return loop.Next{}, nil
}

// decide plans the Works.
func (r *Reconciler) decide(_ context.Context, s *state) (loop.Next, error) {
	switch {
	case s.quota == nil:
	case r.skip.SkipsNamespace(s.key.Namespace):
		if len(s.quota.Spec.StaticAssignments) > 0 {
			s.faults = append(s.faults, fault{fmt.Errorf("the namespace %s stays in the control plane: no cluster gets a share in it", s.key.Namespace), true})
		}
	default:
		s.plans = plan.Shares(s.quota, s.open, s.beside)
		for _, name := range slices.Sorted(maps.Keys(quota.Shares(s.quota))) {
			if !s.known.Has(name) {
				s.faults = append(s.faults, fault{fmt.Errorf("cluster %s: there is none of that name: its share waits until one joins", name), true})
			}
		}
	}
	return loop.Next{}, nil
}

// apply writes the Works that differ from their plans. One cluster's fault stops no other.
func (r *Reconciler) apply(ctx context.Context, s *state) (loop.Next, error) {
	for _, planned := range s.plans {
		err := planned.Err
		if err == nil {
			err = r.works.put(ctx, s.key, planned.Work)
		}
		if err != nil {
			s.faults = append(s.faults, fault{fmt.Errorf("cluster %s: %w", planned.Cluster, err), planned.Err != nil || errors.Is(err, errTaken) || errors.Is(err, errRefused)})
		}
	}
	return loop.Next{}, nil
}

// prune deletes the Works of clusters that have a share no more, or may not have it.
func (r *Reconciler) prune(ctx context.Context, s *state) (loop.Next, error) {
	has := map[string]bool{}
	for _, planned := range s.plans {
		has[planned.Cluster] = planned.Work != nil
	}
	for _, cluster := range s.open {
		if has[cluster.Name] {
			continue
		}
		if err := r.works.remove(ctx, s.key, cluster.Name); err != nil {
			s.faults = append(s.faults, fault{err: fmt.Errorf("cluster %s: %w", cluster.Name, err)})
		}
	}
	return loop.Next{}, nil
}

// report says on the quota what went wrong, once, and has it tried again. That somebody else
// wrote meanwhile is no change.
func (r *Reconciler) report(_ context.Context, s *state) (loop.Next, error) {
	var messages []string
	var open []error
	var next loop.Next
	for _, f := range s.faults {
		switch {
		case apierrors.IsConflict(f.err):
			next.After = conflictRetry
			continue
		case !f.recheckPeriod:
			open = append(open, f.err)
		case next.After == 0:
			next.After = recheckPeriod
		}
		messages = append(messages, f.err.Error())
	}
	text := strings.Join(messages, "; ")
	if text == "" || s.quota == nil {
		r.reported.Forget(s.key)
	} else if r.reported.Record(s.key, text) {
		r.events.Event(s.quota, corev1.EventTypeWarning, workv1alpha2.EventReasonSyncWorkFailed, text)
	}
	return next, errors.Join(open...)
}
