package quota

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/quota"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/debounce"
	"github.com/flotilla-io/flotilla/reconciler/dedup"
)

// How long figures are held back that follow others: until they have been quiet, and at most.
const (
	defaultWait    = 250 * time.Millisecond
	defaultMaxWait = 2 * time.Second
)

// Options tune the loop. The zero value is what production uses.
type Options struct {
	// Wait and MaxWait are how long new figures are held back: until they have not
	// changed for this long, and at most. Zero means 250 ms and 2 s. Where nothing was
	// written for Wait, and nothing is held back, they are written at once.
	Wait, MaxWait time.Duration
	// Clock is the time; nil means the machine's.
	Clock clock.PassiveClock
}

// Reconciler writes the figures of quotas.
type Reconciler struct {
	hub     client.Client
	events  loop.Recorder
	delayed *debounce.Debouncer[client.ObjectKey]
	unread  dedup.Messages[client.ObjectKey] // what clusters say that cannot be read, by quota
	refused dedup.Messages[client.ObjectKey] // why figures were not taken
}

// New returns the loop.
func New(hub client.Client, events loop.Recorder, o Options) *Reconciler {
	if o.Wait == 0 {
		o.Wait = defaultWait
	}
	if o.MaxWait == 0 {
		o.MaxWait = defaultMaxWait
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Reconciler{
		hub: hub, events: events,
		delayed: debounce.New[client.ObjectKey](debounce.Options{Wait: o.Wait, MaxWait: o.MaxWait, Leading: true, Clock: o.Clock}),
	}
}

// Register adds the loop to mgr.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("quota").
		WithOptions(controller.Options{NewQueue: fairqueue.ByNamespace(1)}).
		For(&policyv1alpha1.FederatedResourceQuota{}).
		Watches(&workv1alpha2.ResourceBinding{}, handler.EnqueueRequestsFromMapFunc(r.of), builder.WithPredicates(usageChanges())).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(ofShare), builder.WithPredicates(shareChanges())).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register the quota loop: %w", err)
	}
	return nil
}

// of names the quotas of a binding's namespace.
func (r *Reconciler) of(ctx context.Context, binding client.Object) []reconcile.Request {
	var list policyv1alpha1.FederatedResourceQuotaList
	if err := r.hub.List(ctx, &list, client.InNamespace(binding.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list quotas")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// usageChanges lets through what may change what a binding uses.
func usageChanges() predicate.Predicate {
	uses := func(obj client.Object) bool {
		b, ok := obj.(*workv1alpha2.ResourceBinding)
		return ok && len(quota.Usage(&b.Spec)) > 0
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return uses(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return uses(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() && (uses(e.ObjectOld) || uses(e.ObjectNew))
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// state is what the phases hand on.
type state struct {
	key   client.ObjectKey
	limit *policyv1alpha1.FederatedResourceQuota // as it is stored; shared
	// figures are what its status is to be.
	figures policyv1alpha1.FederatedResourceQuotaStatus
}

// Reconcile brings the figures of one quota up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s := state{key: req.NamespacedName}
	next, err := loop.Run(ctx, &s, r.read, r.count, r.gather, r.debounce, r.write)
	if err == nil && next.After == 0 { // written, or nothing to write
		r.delayed.Forget(s.key)
	}
	return loop.Result(next, err)
}

// read finds the quota. One that is being deleted is left alone.
func (r *Reconciler) read(ctx context.Context, s *state) (loop.Next, error) {
	s.limit = &policyv1alpha1.FederatedResourceQuota{}
	if err := r.hub.Get(ctx, s.key, s.limit, client.UnsafeDisableDeepCopy); err != nil {
		return loop.Next{Done: true}, client.IgnoreNotFound(err)
	}
	return loop.Next{Done: !s.limit.DeletionTimestamp.IsZero()}, nil
}

// count sums up what the bindings of the quota's namespace use of it.
func (r *Reconciler) count(ctx context.Context, s *state) (loop.Next, error) {
	var list workv1alpha2.ResourceBindingList
	if err := r.hub.List(ctx, &list, client.InNamespace(s.key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return loop.Next{}, fmt.Errorf("list bindings of %s: %w", s.key.Namespace, err)
	}
	sum := corev1.ResourceList{}
	for i := range list.Items {
		quota.Add(sum, quota.Usage(&list.Items[i].Spec))
	}
	s.figures = *s.limit.Status.DeepCopy()
	s.figures.Overall, s.figures.OverallUsed = s.limit.Spec.Overall, quota.Of(s.limit, sum)
	return loop.Next{}, nil
}

// debounce delays figures that still change, but not the first ones after a while: clients of
// Karmada look at them once a workload stands in its cluster, which takes less time than the delay.
// Nor does it delay those about another limit.
func (r *Reconciler) debounce(_ context.Context, s *state) (loop.Next, error) {
	form, err := json.Marshal(s.figures)
	if err != nil {
		return loop.Next{}, fmt.Errorf("encode what %s uses: %w", s.key, err) // never: quantities are texts
	}
	wait := r.delayed.Delay(s.key, string(form))
	if wait <= 0 || !apiequality.Semantic.DeepEqual(s.limit.Status.Overall, s.figures.Overall) {
		return loop.Next{}, nil
	}
	return loop.Next{Done: true, After: wait}, nil
}

// write writes the figures.
func (r *Reconciler) write(ctx context.Context, s *state) (loop.Next, error) {
	desired := s.limit.DeepCopy()
	desired.Status = s.figures
	if err := r.hub.Status().Patch(ctx, desired, client.MergeFrom(s.limit)); err != nil {
		if bindings.IsRefused(err) && r.refused.Record(s.key, err.Error()) {
			r.events.Event(s.limit, corev1.EventTypeWarning, policyv1alpha1.EventReasonCollectOverallStatusFailed, err.Error())
		}
		return loop.Next{}, client.IgnoreNotFound(fmt.Errorf("write what %s uses: %w", s.key, err))
	}
	r.delayed.Wrote(s.key)
	r.refused.Forget(s.key)
	log.FromContext(ctx).Info("Wrote what a namespace uses of its quota")
	return loop.Next{}, nil
}
