package unifiedauth

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/access"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/dedup"
	"github.com/flotilla-io/flotilla/reconciler/workrename"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Options tune the loop. The zero value is what production uses.
type Options struct {
	// Workers is how many clusters are worked on side by side; zero means 2.
	Workers int
	// Skip are the namespaces that stay on the hub besides the control plane's; nil
	// means propagation.DefaultSkipRules.
	Skip *propagation.SkipRules
	// Clock is the time; nil means the machine's.
	Clock clock.PassiveClock
}

const defaultWorkers = 2

// Reconciler writes the Works by which the hub may impersonate.
type Reconciler struct {
	hub      client.Client
	events   loop.Recorder
	opts     Options
	skip     propagation.SkipRules
	works    works
	reported dedup.Messages[string] // failures, by cluster
	// succession renames Works.
	succession workrename.Succession
}

// New returns the loop.
func New(hub client.Client, events loop.Recorder, o Options) *Reconciler {
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	skip := propagation.DefaultSkipRules()
	if o.Skip != nil {
		skip = *o.Skip
	}
	wrote := writecache.New[*workv1alpha1.Work](o.Clock)
	return &Reconciler{hub: hub, events: events, opts: o, skip: skip, works: works{hub: hub, wrote: wrote}, succession: workrename.New(hub, wrote)}
}

// Register adds the loop to mgr.
func (r *Reconciler) Register(ctx context.Context, mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("unifiedauth").
		WithOptions(controller.Options{MaxConcurrentReconciles: r.opts.Workers, NewQueue: fairqueue.New[reconcile.Request]}).
		Watches(&clusterv1alpha1.Cluster{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(impersonatorChanges())).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(clusterOfSpace), builder.WithPredicates(newOnly())).
		Watches(&rbacv1.ClusterRole{}, handler.EnqueueRequestsFromMapFunc(r.granted), builder.WithPredicates(granting())).
		Watches(&rbacv1.ClusterRoleBinding{}, handler.EnqueueRequestsFromMapFunc(r.bound), builder.WithPredicates(subjectChanges())).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(clusterOfWork), builder.WithPredicates(r.workEvents())).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register the unified auth loop: %w", err)
	}
	return newRights(r).register(ctx, mgr)
}

// state is what the phases of one pass find out and pass on to later phases.
type state struct {
	key     client.ObjectKey
	cluster *clusterv1alpha1.Cluster
	open    bool // the cluster has an execution namespace to write to
	works   []*workv1alpha1.Work
	changed bool
}

// Reconcile makes the Works of one cluster what they should be.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s := state{key: req.NamespacedName}
	next, err := loop.Run(ctx, &s, r.read, r.decide, r.write, r.prune)
	if s.open {
		r.report(s.cluster, s.changed, err)
	}
	return loop.Result(next, err)
}

// read reads the cluster. It ends the pass where no Work can be written for it yet, or any more.
func (r *Reconciler) read(ctx context.Context, s *state) (loop.Next, error) {
	s.cluster = &clusterv1alpha1.Cluster{}
	if err := r.hub.Get(ctx, s.key, s.cluster, client.UnsafeDisableDeepCopy); err != nil {
		r.reported.Forget(s.key.Name)
		return loop.Next{Done: true}, client.IgnoreNotFound(err)
	}
	var err error
	s.open, err = r.works.open(ctx, s.cluster)
	return loop.Next{Done: !s.open}, err
}

// decide works out the Works that the cluster should have.
func (r *Reconciler) decide(ctx context.Context, s *state) (loop.Next, error) {
	subjects, err := r.subjects(ctx, s.cluster.Name)
	if err != nil {
		return loop.Next{}, err
	}
	s.works, err = access.Works(s.cluster, subjects)
	return loop.Next{}, err
}

// write writes what differs. One Work that cannot be written holds up no other.
func (r *Reconciler) write(ctx context.Context, s *state) (loop.Next, error) {
	var errs []error
	for _, work := range s.works {
		wrote, err := r.works.put(ctx, work)
		s.changed = s.changed || wrote
		if err == nil {
			err = r.succession.Rename(ctx, work, access.FormerWorkName(work.Name))
		}
		errs = append(errs, err)
	}
	return loop.Next{}, errors.Join(errs...)
}

// subjects are who may reach the cluster.
func (r *Reconciler) subjects(ctx context.Context, cluster string) (access.Subjects, error) {
	var roles rbacv1.ClusterRoleList
	if err := r.hub.List(ctx, &roles, client.UnsafeDisableDeepCopy); err != nil {
		return access.Subjects{}, fmt.Errorf("list cluster roles: %w", err)
	}
	var bindings rbacv1.ClusterRoleBindingList
	if err := r.hub.List(ctx, &bindings, client.UnsafeDisableDeepCopy); err != nil {
		return access.Subjects{}, fmt.Errorf("list cluster role bindings: %w", err)
	}
	return access.Of(cluster, pointers(roles.Items), pointers(bindings.Items)), nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// prune deletes the Works of a cluster that has no impersonator any more.
func (r *Reconciler) prune(ctx context.Context, s *state) (loop.Next, error) {
	if len(s.works) > 0 {
		return loop.Next{}, nil
	}
	cluster := s.cluster
	var errs []error
	for _, name := range slices.Concat(access.WorkNames(), access.FormerWorkNames()) {
		work := &workv1alpha1.Work{}
		key := client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(cluster.Name), Name: name}
		err := r.hub.Get(ctx, key, work, client.UnsafeDisableDeepCopy)
		if err != nil || !metav1.IsControlledBy(work, cluster) || !work.DeletionTimestamp.IsZero() {
			errs = append(errs, client.IgnoreNotFound(err))
			continue
		}
		err = r.hub.Delete(ctx, work.DeepCopy(), client.Preconditions{UID: ptr.To(work.UID)})
		errs = append(errs, client.IgnoreNotFound(err))
		log.FromContext(ctx).Info("Let nobody be impersonated any more", "work", name)
	}
	return loop.Next{}, errors.Join(errs...)
}

// report says on the Cluster what changed, and what goes wrong once.
func (r *Reconciler) report(cluster *clusterv1alpha1.Cluster, changed bool, err error) {
	switch {
	case err != nil:
		if r.reported.Record(cluster.Name, err.Error()) {
			r.events.Event(cluster, corev1.EventTypeWarning, clusterv1alpha1.EventReasonSyncImpersonationConfigFailed, err.Error())
		}
	case changed:
		r.reported.Forget(cluster.Name)
		r.events.Event(cluster, corev1.EventTypeNormal, clusterv1alpha1.EventReasonSyncImpersonationConfigSucceed, "users of the hub who may reach the cluster can be impersonated in it")
	default:
		r.reported.Forget(cluster.Name)
	}
}

// bound names the clusters that a binding lets its subjects reach: most bindings
// are to roles that have nothing to do with clusters. One whose role is not there
// lets nobody reach any; the role's own event comes when it is.
func (r *Reconciler) bound(ctx context.Context, obj client.Object) []reconcile.Request {
	binding, ok := obj.(*rbacv1.ClusterRoleBinding)
	if !ok || binding.RoleRef.Kind != access.ClusterRoleKind {
		return nil
	}
	role := &rbacv1.ClusterRole{}
	if err := r.hub.Get(ctx, client.ObjectKey{Name: binding.RoleRef.Name}, role, client.UnsafeDisableDeepCopy); err != nil {
		if !apierrors.IsNotFound(err) {
			log.FromContext(ctx).Error(err, "read the role of a binding", "role", binding.RoleRef.Name)
		}
		return nil
	}
	return r.granted(ctx, role)
}

// granted names the clusters that a role lets its subjects reach.
func (r *Reconciler) granted(ctx context.Context, obj client.Object) []reconcile.Request {
	role, ok := obj.(*rbacv1.ClusterRole)
	if !ok || !access.GrantsAny(role) {
		return nil
	}
	var list clusterv1alpha1.ClusterList
	if err := r.hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list clusters")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if name := list.Items[i].Name; access.Grants(role, name) {
			out = append(out, named(name, true)...)
		}
	}
	return out
}

// clusterOfSpace names the cluster of an execution namespace.
func clusterOfSpace(_ context.Context, namespace client.Object) []reconcile.Request {
	return named(workv1alpha2.ClusterOfExecutionNamespace(namespace.GetName()))
}

// clusterOfWork names the cluster of a Work of ours.
func clusterOfWork(_ context.Context, work client.Object) []reconcile.Request {
	if !slices.Contains(access.WorkNames(), work.GetName()) {
		return nil
	}
	return named(workv1alpha2.ClusterOfExecutionNamespace(work.GetNamespace()))
}

func named(cluster string, ok bool) []reconcile.Request {
	if !ok {
		return nil
	}
	request := reconcile.Request{}
	request.Name = cluster
	return []reconcile.Request{request}
}
