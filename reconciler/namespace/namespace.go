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
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
	"github.com/flotilla-io/flotilla/reconciler/undelete"
	"github.com/flotilla-io/flotilla/reconciler/workrename"
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
	Switches *revisiongate.Tracker
	// Clock is the time; nil means the machine's.
	Clock clock.PassiveClock
}

const (
	defaultWorkers  = 2
	defaultParallel = 16
)

// Reconciler writes the Works of namespaces.
type Reconciler struct {
	hub  client.Client
	skip propagation.SkipRules
	opts Options
	// switches has the overrides; waiting are the namespaces of what is being switched.
	switches *revisiongate.Tracker
	waiting  *revisiongate.Waiting[reconcile.Request]
	inbox    loop.Inbox[reconcile.Request]
	wrote    *writecache.Cache[*workv1alpha1.Work]
	// succession renames Works.
	succession workrename.Succession
	// recalls has what is in members stay there, where it is wanted again.
	recalls undelete.Recaller
}

// New returns the loop.
func New(hub client.Client, opts Options) *Reconciler {
	if opts.Workers == 0 {
		opts.Workers = defaultWorkers
	}
	if opts.Parallel == 0 {
		opts.Parallel = defaultParallel
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	skip := propagation.DefaultSkipRules()
	if opts.Skip != nil {
		skip = *opts.Skip
	}
	wrote := writecache.New[*workv1alpha1.Work](opts.Clock)
	r := &Reconciler{
		hub: hub, skip: skip, opts: opts, switches: opts.Switches, wrote: wrote,
		succession: workrename.New(hub, wrote), recalls: undelete.Recaller{Hub: hub, Written: wrote},
	}
	if r.switches == nil {
		r.switches = revisiongate.New(hub, nil)
	}
	r.waiting = revisiongate.NewWaiting(r.switches, func(req reconcile.Request) { r.inbox.Add(req, false) })
	return r
}

// Register adds the loop to mgr.
func (r *Reconciler) Register(ctx context.Context, mgr ctrl.Manager) error {
	r.switches.Listen(r.overrides(ctx))
	if r.opts.Switches == nil {
		if err := r.switches.Register(ctx, mgr.GetCache(), false); err != nil {
			return err
		}
	}
	owned := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &corev1.Namespace{}, handler.OnlyControllerOwner())
	err := ctrl.NewControllerManagedBy(mgr).
		Named("namespace").
		WithOptions(controller.Options{MaxConcurrentReconciles: r.opts.Workers, NewQueue: fairqueue.New[reconcile.Request]}).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.affected), builder.WithPredicates(contentChanges())).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(clusterChanges())).
		WatchesRawSource(&r.inbox).
		WatchesRawSource(revisiongate.Synced[reconcile.Request]{Of: r.switches}).
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

// state is one pass about one namespace.
type state struct {
	req       reconcile.Request
	namespace *corev1.Namespace
	// plans are what every cluster should hold of it.
	plans []plan.WorkPlan
}

// Reconcile makes the Works of one namespace what they should be.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s := state{req: req}
	return loop.Result(loop.Run(ctx, &s, r.read, r.plan, r.dispatch))
}

// read reads the namespace. It ends the pass for one that is gone, or is to be in no member.
func (r *Reconciler) read(ctx context.Context, s *state) (loop.Next, error) {
	s.namespace = &corev1.Namespace{}
	err := r.hub.Get(ctx, s.req.NamespacedName, s.namespace)
	if apierrors.IsNotFound(err) {
		return loop.Next{Done: true}, r.letGo(ctx, s.req.Name)
	}
	if err != nil {
		return loop.Next{}, fmt.Errorf("read namespace %s: %w", s.req.Name, err)
	}
	return loop.Next{Done: !s.namespace.DeletionTimestamp.IsZero() || !plan.SyncsNamespace(s.namespace, r.skip)}, nil
}

// plan finds out what clusters should hold, unless that is being switched: its end enqueues the namespace.
func (r *Reconciler) plan(ctx context.Context, s *state) (_ loop.Next, err error) {
	overrides, owner, known := r.counting(s.namespace)
	if !known {
		r.waiting.Add(owner, s.req, func() bool { _, _, known := r.counting(s.namespace); return !known })
		return loop.Next{Done: true}, nil
	}
	s.plans, err = r.plans(ctx, s.namespace, overrides)
	return loop.Next{}, err
}

// dispatch writes the Works that differ from their plans.
func (r *Reconciler) dispatch(ctx context.Context, s *state) (loop.Next, error) {
	failed := make([]error, len(s.plans))
	group := errgroup.Group{}
	group.SetLimit(r.opts.Parallel)
	for i := range s.plans {
		group.Go(func() error {
			if failed[i] = r.bring(ctx, s.plans[i]); failed[i] == nil {
				failed[i] = r.succession.Rename(ctx, s.plans[i].Work, workv1alpha2.FormerWorkName("Namespace", s.namespace.Name, ""))
			}
			return nil // one cluster's fault stops no other
		})
	}
	_ = group.Wait() // always nil: the errors are in failed
	return loop.Next{}, errors.Join(failed...)
}

// counting returns the overrides that count for a namespace; known is false while owner is being switched,
// of which it or they are a part.
func (r *Reconciler) counting(namespace *corev1.Namespace) (overrides []policyv1alpha1.Override, owner client.ObjectKey, known bool) {
	if owner, switching := r.switches.Switching(namespace); switching {
		return nil, owner, false
	}
	return r.switches.Overrides(resourceOf(namespace))
}

// letGo has members remove a namespace that is gone from the hub, also those that could not remove it yet when it
// had come back meanwhile.
func (r *Reconciler) letGo(ctx context.Context, namespace string) error {
	var clusters clusterv1alpha1.ClusterList
	if err := r.hub.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list clusters: %w", err)
	}
	var failed []error
	for i := range clusters.Items {
		key := client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(clusters.Items[i].Name), Name: workv1alpha2.WorkName("Namespace", namespace, "")}
		cached := &workv1alpha1.Work{}
		err := r.hub.Get(ctx, key, cached, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			failed = append(failed, fmt.Errorf("read the work %s: %w", key, err))
			continue
		}
		if work, found := r.wrote.Latest(key, cached, err == nil); found && !work.DeletionTimestamp.IsZero() {
			failed = append(failed, r.recalls.LetGo(ctx, work))
		}
	}
	return errors.Join(failed...)
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
	if !current.DeletionTimestamp.IsZero() { // what is in it may be what it is to hold
		if err := r.recalls.Keep(ctx, current); err != nil {
			return err
		}
		ended, err := r.recalls.End(ctx, current)
		if err != nil || !ended { // what the execution loop says of it, or its end, brings the namespace back
			return err
		}
		return r.create(ctx, planned)
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
