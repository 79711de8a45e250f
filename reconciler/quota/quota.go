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
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/policies/quota"
	"github.com/flotilla-io/flotilla/reconciler/debounce"
)

// How long figures are held back: until they have been quiet, and at most.
const (
	defaultWait    = 250 * time.Millisecond
	defaultMaxWait = 2 * time.Second
)

// Options tune the loop. The zero value is what production uses.
type Options struct {
	// Wait and MaxWait are how long new figures are held back: until they have not
	// changed for this long, and at most. Zero means 250 ms and 2 s.
	Wait, MaxWait time.Duration
	// Clock is the time; nil means the machine's.
	Clock clock.PassiveClock
}

// Reconciler writes the figures of quotas.
type Reconciler struct {
	hub     client.Client
	delayed *debounce.Debouncer[client.ObjectKey]
}

// New returns the loop.
func New(hub client.Client, o Options) *Reconciler {
	if o.Wait == 0 {
		o.Wait = defaultWait
	}
	if o.MaxWait == 0 {
		o.MaxWait = defaultMaxWait
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Reconciler{hub: hub, delayed: debounce.New[client.ObjectKey](debounce.Options{Wait: o.Wait, MaxWait: o.MaxWait, Clock: o.Clock})}
}

// Register adds the loop to mgr.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("quota").
		WithOptions(controller.Options{NewQueue: fairqueue.ByNamespace(1)}).
		For(&policyv1alpha1.FederatedResourceQuota{}).
		Watches(&workv1alpha2.ResourceBinding{}, handler.EnqueueRequestsFromMapFunc(r.of), builder.WithPredicates(usageChanges())).
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

// Reconcile brings the figures of one quota up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	limit := &policyv1alpha1.FederatedResourceQuota{}
	if err := r.hub.Get(ctx, req.NamespacedName, limit, client.UnsafeDisableDeepCopy); err != nil {
		r.delayed.Forget(req.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	used, err := r.used(ctx, limit)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !limit.DeletionTimestamp.IsZero() ||
		(apiequality.Semantic.DeepEqual(limit.Status.Overall, limit.Spec.Overall) && apiequality.Semantic.DeepEqual(limit.Status.OverallUsed, used)) {
		r.delayed.Forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	figures := limit.DeepCopy()
	figures.Status.Overall, figures.Status.OverallUsed = figures.Spec.Overall, used
	if wait := r.hold(figures); wait > 0 && limit.Status.Overall != nil { // the first figures are for who waits
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if err := r.hub.Status().Patch(ctx, figures, client.MergeFrom(limit)); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(fmt.Errorf("write what %s uses: %w", req, err))
	}
	r.delayed.Forget(req.NamespacedName)
	log.FromContext(ctx).Info("Wrote what a namespace uses of its quota")
	return reconcile.Result{}, nil
}

// used is what the bindings of a quota's namespace use of it.
func (r *Reconciler) used(ctx context.Context, limit *policyv1alpha1.FederatedResourceQuota) (corev1.ResourceList, error) {
	var list workv1alpha2.ResourceBindingList
	if err := r.hub.List(ctx, &list, client.InNamespace(limit.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list bindings of %s: %w", limit.Namespace, err)
	}
	sum := corev1.ResourceList{}
	for i := range list.Items {
		quota.Add(sum, quota.Usage(&list.Items[i].Spec))
	}
	return quota.Of(limit, sum), nil
}

// hold returns for how long to hold back the figures.
func (r *Reconciler) hold(figures *policyv1alpha1.FederatedResourceQuota) time.Duration {
	form, err := json.Marshal(figures.Status)
	if err != nil {
		return 0 // never: quantities are texts
	}
	return r.delayed.Delay(client.ObjectKeyFromObject(figures), string(form))
}
