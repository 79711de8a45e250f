package rebalance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1alpha1 "github.com/flotilla-io/flotilla/api/apps/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Options tune the loop. The zero value is the default.
type Options struct {
	// Workers is how many rebalancers are worked on side by side; zero means 2.
	Workers int
	// Abreast is how many bindings of one rebalancer are written side by side;
	// zero means 8.
	Abreast int
	// Clock is the real one if nil.
	Clock clock.PassiveClock
}

// Reconciler serves WorkloadRebalancers. Use New.
type Reconciler struct {
	hub   client.Client
	opts  Options
	wrote *writecache.Cache[*appsv1alpha1.WorkloadRebalancer]

	mu sync.Mutex
	// asked has, by the name of a rebalancer, what was asked for and its status
	// does not say yet.
	asked map[string]asked
}

// asked are the workloads that one generation of a rebalancer has asked for.
type asked struct {
	uid        types.UID
	generation int64
	workloads  map[appsv1alpha1.ObjectReference]bool
}

// New returns the loop. hub reads from a cache.
func New(hub client.Client, opts Options) *Reconciler {
	if opts.Workers == 0 {
		opts.Workers = 2
	}
	if opts.Abreast == 0 {
		opts.Abreast = 8
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	return &Reconciler{hub: hub, opts: opts, wrote: writecache.New[*appsv1alpha1.WorkloadRebalancer](opts.Clock), asked: map[string]asked{}}
}

// Register adds the loop to mgr.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("rebalance").
		WithOptions(controller.Options{MaxConcurrentReconciles: r.opts.Workers, NewQueue: fairqueue.New[reconcile.Request]}).
		For(&appsv1alpha1.WorkloadRebalancer{}, builder.WithPredicates(r.edits())).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register the rebalance loop: %w", err)
	}
	return nil
}

// edits lets all changes through but those of the status, which are this loop's.
func (r *Reconciler) edits() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			if rebalancer, ok := e.ObjectNew.(*appsv1alpha1.WorkloadRebalancer); ok {
				r.wrote.Observed(rebalancer)
			}
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			r.wrote.Gone(e.Object)
			return false
		},
	}
}

// errStale says that a binding has changed in the same moment.
var errStale = errors.New("a binding has changed meanwhile")

// stalePause is about how long the cache takes to show such a change.
const stalePause = 50 * time.Millisecond

// state is one look at one rebalancer.
type state struct {
	rebalancer *appsv1alpha1.WorkloadRebalancer // shared: not to be changed
	status     appsv1alpha1.WorkloadRebalancerStatus
	// failed is why some workloads could not be asked for yet.
	failed error
}

// Reconcile brings one rebalancer on.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cached := &appsv1alpha1.WorkloadRebalancer{}
	err := r.hub.Get(ctx, req.NamespacedName, cached)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("read rebalancer %s: %w", req.Name, err)
	}
	rebalancer, found := r.wrote.Latest(req.NamespacedName, cached, err == nil)
	if !found || r.wrote.Leaving(rebalancer) {
		r.reported(req.Name)
		return reconcile.Result{}, nil
	}
	return loop.Result(loop.Run(ctx, &state{rebalancer: rebalancer}, r.ask, r.report, r.retire))
}

// ask asks for a new placement of every workload that is not served yet.
func (r *Reconciler) ask(ctx context.Context, s *state) (loop.Next, error) {
	s.status = *s.rebalancer.Status.DeepCopy()
	if served(s.rebalancer) {
		return loop.Next{}, nil
	}
	s.status.ObservedWorkloads = list(s.rebalancer)
	var (
		group  errgroup.Group
		mu     sync.Mutex
		failed []error
	)
	group.SetLimit(r.opts.Abreast)
	for i := range s.status.ObservedWorkloads {
		item := &s.status.ObservedWorkloads[i]
		if item.Result != "" {
			continue
		}
		group.Go(func() error {
			done, err := r.trigger(ctx, item.Workload, s.rebalancer)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, err)
				return nil //nolint:nilerr // the others are served
			}
			item.Result, item.Reason = result(done)
			return nil
		})
	}
	_ = group.Wait() // always nil, see above
	if s.failed = errors.Join(failed...); len(failed) > 0 && !slices.ContainsFunc(failed, func(err error) bool { return !errors.Is(err, errStale) }) {
		s.failed = loop.Waiting("", stalePause, errStale)
	}
	return loop.Next{}, nil
}

// trigger has the workload placed from scratch, and reports whether there is
// one.
func (r *Reconciler) trigger(ctx context.Context, workload appsv1alpha1.ObjectReference, asks *appsv1alpha1.WorkloadRebalancer) (bool, error) {
	if r.stands(asks, workload) {
		return true, nil
	}
	b, found, err := bindings.Get(ctx, r.hub, keyOf(workload))
	if err != nil || !found || !carries(b, workload) {
		return false, err
	}
	at, due := requestAt(b, asks, r.opts.Clock.Now())
	if !due {
		return true, nil
	}
	desired := b.DeepCopyObject().(workv1alpha2.Binding)
	desired.BindingSpec().RescheduleTriggeredAt = &at
	patch, some, err := bindings.Patch(b, desired)
	if err != nil || !some {
		return true, err
	}
	switch err := r.hub.Patch(ctx, desired, patch); {
	case err != nil && bindings.IsStale(err):
		return true, errStale
	case err != nil:
		return true, fmt.Errorf("ask for a new placement of %s: %w", client.ObjectKeyFromObject(b), err)
	}
	r.note(asks, workload)
	log.FromContext(ctx).Info("asked for a new placement", "binding", client.ObjectKeyFromObject(b))
	return true, nil
}

// stands reports whether asks has asked for the workload already, and could not say
// so: each request places it from scratch.
func (r *Reconciler) stands(asks *appsv1alpha1.WorkloadRebalancer, workload appsv1alpha1.ObjectReference) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.asked[asks.Name]
	return was.uid == asks.UID && was.generation == asks.Generation && was.workloads[workload]
}

// note remembers that asks has asked for the workload.
func (r *Reconciler) note(asks *appsv1alpha1.WorkloadRebalancer, workload appsv1alpha1.ObjectReference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	is := r.asked[asks.Name]
	if is.uid != asks.UID || is.generation != asks.Generation {
		is = asked{uid: asks.UID, generation: asks.Generation, workloads: map[appsv1alpha1.ObjectReference]bool{}}
		r.asked[asks.Name] = is
	}
	is.workloads[workload] = true
}

// reported forgets what a rebalancer has asked for: its status says it, or it is gone.
func (r *Reconciler) reported(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.asked, name)
}

// report writes the status if it differs.
func (r *Reconciler) report(ctx context.Context, s *state) (loop.Next, error) {
	complete(&s.status, s.rebalancer, metav1.NewTime(r.opts.Clock.Now().UTC().Truncate(time.Second)))
	if equality.Semantic.DeepEqual(s.status, s.rebalancer.Status) {
		return loop.Next{}, s.failed
	}
	before, after := &appsv1alpha1.WorkloadRebalancer{Status: s.rebalancer.Status}, &appsv1alpha1.WorkloadRebalancer{Status: s.status}
	data, err := client.MergeFrom(before).Data(after)
	if err != nil {
		return loop.Next{}, fmt.Errorf("encode the status of rebalancer %s: %w", s.rebalancer.Name, err)
	}
	updated := &appsv1alpha1.WorkloadRebalancer{ObjectMeta: metav1.ObjectMeta{Name: s.rebalancer.Name}}
	if err := r.hub.Status().Patch(ctx, updated, client.RawPatch(types.MergePatchType, data)); err != nil {
		return loop.Next{}, errors.Join(s.failed, fmt.Errorf("write the status of rebalancer %s: %w", s.rebalancer.Name, err))
	}
	r.wrote.Wrote(updated)
	r.reported(updated.Name)
	s.rebalancer = updated
	return loop.Next{}, s.failed
}

// retire deletes a rebalancer whose time to live is over. One that was edited
// meanwhile has more to do, and a Kustomization would bring back what it has applied, which asks for all of it again.
func (r *Reconciler) retire(ctx context.Context, s *state) (loop.Next, error) {
	ttl, finished := s.rebalancer.Spec.TTLSecondsAfterFinished, s.status.FinishTime
	_, fromGit := inventory.OwnerOf(s.rebalancer)
	if ttl == nil || finished == nil || fromGit || !served(s.rebalancer) {
		return loop.Next{}, nil
	}
	left := finished.Add(time.Duration(*ttl) * time.Second).Sub(r.opts.Clock.Now())
	if left > 0 {
		return loop.Next{After: left}, nil
	}
	err := r.hub.Delete(ctx, s.rebalancer, client.Preconditions{UID: ptr.To(s.rebalancer.UID), ResourceVersion: ptr.To(s.rebalancer.ResourceVersion)})
	if err != nil && !bindings.IsStale(err) {
		return loop.Next{}, fmt.Errorf("delete rebalancer %s, whose time to live is over: %w", s.rebalancer.Name, err)
	}
	if err == nil {
		r.wrote.Deleted(s.rebalancer)
		log.FromContext(ctx).Info("deleted a rebalancer whose time to live is over")
	}
	return loop.Next{}, nil
}
