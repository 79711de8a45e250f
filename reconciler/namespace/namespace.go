package namespace

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/succession"
	"github.com/flotilla-io/flotilla/reconciler/switching"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Options tune the loop. The zero value is what production uses.
type Options struct {
	// Skip are the namespaces that stay on the hub besides the control plane's;
	// nil means propagation.DefaultSkipRules.
	Skip *propagation.SkipRules
	// Workers is how many namespaces are worked on side by side; zero means 2.
	Workers int
	// Parallel is how many Works of one namespace are written side by side; zero
	// means 16.
	Parallel int
	// Switches reports what is being switched from one revision to the next, and the overrides
	// that count; the loop has its own, which knows of no switch, if nil.
	Switches *switching.Tracker
	// Clock is the time; nil means the machine's.
	Clock clock.PassiveClock
}

const (
	defaultWorkers  = 2
	defaultParallel = 16
)

// Reconciler writes the Works of namespaces.
type Reconciler struct {
	hub     client.Client
	skip    propagation.SkipRules
	options Options
	// switches has the overrides; waiting are the namespaces of what is being switched.
	switches *switching.Tracker
	waiting  *switching.Waiting[reconcile.Request]
	inbox    loop.Inbox[reconcile.Request]
	wrote    *writecache.Cache[*workv1alpha1.Work]
	// succession renames Works.
	succession succession.Succession
}

// New returns the loop.
func New(hub client.Client, o Options) *Reconciler {
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Parallel == 0 {
		o.Parallel = defaultParallel
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	skip := propagation.DefaultSkipRules()
	if o.Skip != nil {
		skip = *o.Skip
	}
	wrote := writecache.New[*workv1alpha1.Work](o.Clock)
	r := &Reconciler{hub: hub, skip: skip, options: o, switches: o.Switches, wrote: wrote, succession: succession.New(hub, wrote)}
	if r.switches == nil {
		r.switches = switching.New(hub, nil)
	}
	r.waiting = switching.NewWaiting(r.switches, func(req reconcile.Request) { r.inbox.Add(req, false) })
	return r
}

// Register adds the loop to mgr.
func (r *Reconciler) Register(ctx context.Context, mgr ctrl.Manager) error {
	r.switches.Listen(r.overrides(ctx))
	if r.options.Switches == nil {
		if err := r.switches.Register(ctx, mgr.GetCache(), false); err != nil {
			return err
		}
	}
	owned := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &corev1.Namespace{}, handler.OnlyControllerOwner())
	err := ctrl.NewControllerManagedBy(mgr).
		Named("namespace").
		WithOptions(controller.Options{MaxConcurrentReconciles: r.options.Workers, NewQueue: fairqueue.New[reconcile.Request]}).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.affected), builder.WithPredicates(contentChanges())).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(clusterChanges())).
		WatchesRawSource(&r.inbox).
		WatchesRawSource(switching.Synced[reconcile.Request]{Of: r.switches}).
		Watches(&workv1alpha1.Work{}, owned, builder.WithPredicates(r.workEvents())).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register the namespace loop: %w", err)
	}
	return nil
}

// affected names the namespace itself, or, where it is a cluster's execution
// namespace, all that are now to be made in that cluster.
func (r *Reconciler) affected(ctx context.Context, namespace client.Object) []reconcile.Request {
	if _, ok := workv1alpha2.ClusterOfExecutionNamespace(namespace.GetName()); ok {
		return r.all(ctx, namespace)
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(namespace)}}
}

// all names every namespace that is to be in members.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var list corev1.NamespaceList
	if err := r.hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list namespaces")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if plan.SyncsNamespace(&list.Items[i], r.skip) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// Reconcile makes the Works of one namespace what they should be.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	namespace := &corev1.Namespace{}
	if err := r.hub.Get(ctx, req.NamespacedName, namespace); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !namespace.DeletionTimestamp.IsZero() || !plan.SyncsNamespace(namespace, r.skip) {
		return reconcile.Result{}, nil
	}
	overrides, owner, known := r.counting(namespace)
	if !known {
		r.waiting.Add(owner, req, func() bool { _, _, known := r.counting(namespace); return !known })
		return reconcile.Result{}, nil
	}
	plans, err := r.plans(ctx, namespace, overrides)
	if err != nil {
		return reconcile.Result{}, err
	}
	failed := make([]error, len(plans))
	group := errgroup.Group{}
	group.SetLimit(r.options.Parallel)
	for i := range plans {
		group.Go(func() error {
			if failed[i] = r.bring(ctx, plans[i]); failed[i] == nil {
				failed[i] = r.succession.Rename(ctx, plans[i].Work, workv1alpha2.FormerWorkName("Namespace", namespace.Name, ""))
			}
			return nil // one cluster's fault stops no other
		})
	}
	_ = group.Wait() // always nil: the errors are in failed
	return reconcile.Result{}, errors.Join(failed...)
}

// counting returns the overrides that count for a namespace; known is false while owner is being switched,
// of which it or they are a part.
func (r *Reconciler) counting(namespace *corev1.Namespace) (overrides []policyv1alpha1.Override, owner client.ObjectKey, known bool) {
	if owner, switching := r.switches.Switching(namespace); switching {
		return nil, owner, false
	}
	return r.switches.Overrides(resourceOf(namespace))
}

// plans returns what every cluster should hold of the namespace. A cluster whose
// execution namespace is not there has no room yet, or is leaving.
func (r *Reconciler) plans(ctx context.Context, namespace *corev1.Namespace, overrides []policyv1alpha1.Override) ([]plan.WorkPlan, error) {
	var clusters clusterv1alpha1.ClusterList
	if err := r.hub.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(namespace)
	if err != nil {
		return nil, fmt.Errorf("read namespace %s: %w", namespace.Name, err)
	}
	var out []plan.WorkPlan
	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		open, err := r.open(ctx, cluster)
		if err != nil {
			return nil, err
		}
		if open {
			out = append(out, plan.Namespace(&unstructured.Unstructured{Object: content}, cluster, overrides))
		}
	}
	return out, nil
}

func (r *Reconciler) open(ctx context.Context, cluster *clusterv1alpha1.Cluster) (bool, error) {
	if !cluster.DeletionTimestamp.IsZero() {
		return false, nil
	}
	space := &corev1.Namespace{}
	err := r.hub.Get(ctx, client.ObjectKey{Name: workv1alpha2.ExecutionNamespace(cluster.Name)}, space, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the execution namespace of cluster %s: %w", cluster.Name, err)
	}
	return space.DeletionTimestamp.IsZero(), nil
}

// bring makes one Work what is planned.
func (r *Reconciler) bring(ctx context.Context, planned plan.WorkPlan) error {
	if planned.Err != nil {
		return fmt.Errorf("cluster %s: %w", planned.Cluster, planned.Err)
	}
	key := client.ObjectKeyFromObject(planned.Work)
	cached := &workv1alpha1.Work{}
	err := r.hub.Get(ctx, key, cached, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cluster %s: read work: %w", planned.Cluster, err)
	}
	current, found := r.wrote.Latest(key, cached, err == nil)
	if !found {
		return r.create(ctx, planned)
	}
	if !current.DeletionTimestamp.IsZero() {
		return r.recall(ctx, current) // its end brings the namespace back
	}
	desired, changed := merged(current, planned.Work)
	if !changed {
		return nil
	}
	if err := r.hub.Patch(ctx, desired, patchFrom(current, desired)); err != nil {
		if apierrors.IsNotFound(err) {
			return nil // its end brings the namespace back
		}
		return fmt.Errorf("cluster %s: change work: %w", planned.Cluster, err)
	}
	r.wrote.Wrote(desired)
	log.FromContext(ctx).Info("Changed the work of a namespace", "cluster", planned.Cluster)
	return nil
}

// recall has a Work that is being deleted leave the namespace where it is: it was made
// anew meanwhile, and what is in it may be what it is to hold.
func (r *Reconciler) recall(ctx context.Context, leaving *workv1alpha1.Work) error {
	if leaving.Annotations[workv1alpha2.WantedAgainAnnotation] == "true" {
		return nil
	}
	recalled := leaving.DeepCopy()
	if recalled.Annotations == nil {
		recalled.Annotations = map[string]string{}
	}
	recalled.Annotations[workv1alpha2.WantedAgainAnnotation] = "true"
	if err := r.hub.Patch(ctx, recalled, client.MergeFrom(leaving)); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("recall the work %s: %w", client.ObjectKeyFromObject(leaving), err)
	}
	r.wrote.Wrote(recalled)
	log.FromContext(ctx).Info("The namespace is wanted again: its work leaves it in place", "work", client.ObjectKeyFromObject(leaving))
	return nil
}

// patchFrom makes the patch to what a Work should be. One that takes an author off is
// for the Work as it was seen: what he writes meanwhile stays his.
func patchFrom(current, desired *workv1alpha1.Work) client.Patch {
	if current.Annotations[workv1alpha2.AppliedByAnnotation] != desired.Annotations[workv1alpha2.AppliedByAnnotation] {
		return client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{})
	}
	return client.MergeFrom(current)
}

func (r *Reconciler) create(ctx context.Context, planned plan.WorkPlan) error {
	work := planned.Work.DeepCopy()
	err := r.hub.Create(ctx, work)
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // the cache lags: an event of the Work or of the execution namespace comes
	case err != nil:
		return fmt.Errorf("cluster %s: create work: %w", planned.Cluster, err)
	}
	r.wrote.Wrote(work)
	log.FromContext(ctx).Info("Created the work of a namespace", "cluster", planned.Cluster)
	return nil
}

// merged returns current with what is planned in it, and whether that differs.
func merged(current, planned *workv1alpha1.Work) (*workv1alpha1.Work, bool) {
	planned = plan.Continued(planned, current)
	out := current.DeepCopy()
	changed := merge(&out.Labels, planned.Labels)
	changed = merge(&out.Annotations, planned.Annotations) || changed
	for _, key := range []string{workv1alpha2.DriftAnnotation, workv1alpha2.AppliedByAnnotation} {
		if _, set := planned.Annotations[key]; !set && out.Annotations[key] != "" {
			delete(out.Annotations, key)
			changed = true
		}
	}
	if !sameManifests(current.Spec.Workload.Manifests, planned.Spec.Workload.Manifests) {
		out.Spec.Workload = planned.Spec.Workload
		changed = true
	}
	return out, changed
}

func merge(into *map[string]string, from map[string]string) bool {
	changed := false
	for key, value := range from {
		if got, ok := (*into)[key]; !ok || got != value {
			changed = true
		}
	}
	if changed {
		out := maps.Clone(*into)
		if out == nil {
			out = map[string]string{}
		}
		maps.Copy(out, from)
		*into = out
	}
	return changed
}

func sameManifests(a, b []workv1alpha1.Manifest) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !members.SameJSON(a[i].RawExtension, b[i].RawExtension) {
			return false
		}
	}
	return true
}
