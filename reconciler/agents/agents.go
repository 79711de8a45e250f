package agents

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

// Options tune the loops. The zero value is the default.
type Options struct {
	// Clock is the real one if nil.
	Clock clock.PassiveClock
	// Events takes Events about Clusters; nil records none.
	Events loop.Recorder
	// KarmadactlRegister approves the certificate that karmadactl register asks for rights
	// with; the API server answers the requests made with it.
	KarmadactlRegister bool
}

// Reconciler is two loops: one approves requests, and one keeps rights. Use New.
type Reconciler struct {
	approver approver
	entitler entitler
	reporter reporter
}

// approver is the loop that decides requests for certificates, and gives a requester with a
// bootstrap token its first rights.
type approver struct {
	hub    client.Client
	live   client.Reader
	rights grantor
	clock  clock.PassiveClock
	// evidence is what requests are judged by.
	evidence evidence
	// karmadactl says that the certificate is approved that it asks for rights with.
	karmadactl bool
}

// entitler is the loop that keeps the RBAC objects of each cluster's agent up to date.
type entitler struct {
	hub    client.Client
	rights grantor
	clock  clock.PassiveClock
}

// New returns the loops. hub reads Clusters, requests and namespaces from a cache;
// live reads from the server.
func New(hub client.Client, live client.Reader, opts Options) *Reconciler {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	rights := grantor{hub: hub, live: live}
	return &Reconciler{
		approver: approver{hub: hub, live: live, rights: rights, clock: opts.Clock, evidence: evidence{hub: hub, live: live}, karmadactl: opts.KarmadactlRegister},
		entitler: entitler{hub: hub, rights: rights, clock: opts.Clock},
		reporter: reporter{events: opts.Events},
	}
}

// Register adds the loops to mgr: one worker each, so that of two requests under
// one name the second knows of the first.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("agentcsrapproving").
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, NewQueue: fairqueue.New[reconcile.Request]}).
		For(&certificatesv1.CertificateSigningRequest{}, builder.WithPredicates(open())).
		Complete(&r.approver)
	if err != nil {
		return fmt.Errorf("register the loop that approves agents: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("agentrights").
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, NewQueue: fairqueue.New[reconcile.Request]}).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(registrations())).
		Watches(&clusterv1alpha1.Cluster{}, r.reporter.clusterEvents()).
		Watches(&rbacv1.ClusterRole{}, handler.EnqueueRequestsFromMapFunc(clusterOfRole)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(clusterOfSpace), builder.WithPredicates(beginsAndEnds())).
		Complete(&r.entitler)
	if err != nil {
		return fmt.Errorf("register the loop of agents' rights: %w", err)
	}
	return nil
}

// open passes requests without a decision.
func open() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		csr, ok := obj.(*certificatesv1.CertificateSigningRequest)
		return ok && undecided(csr)
	})
}

// registrations passes the events that create or end the rights of an agent.
func registrations() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok1 := e.ObjectOld.(*clusterv1alpha1.Cluster)
		is, ok2 := e.ObjectNew.(*clusterv1alpha1.Cluster)
		return ok1 && ok2 && (was.UID != is.UID || was.Spec.SyncMode != is.Spec.SyncMode)
	}}
}

// beginsAndEnds passes namespaces that are created, and that are being deleted.
func beginsAndEnds() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetDeletionTimestamp().IsZero() && !e.ObjectNew.GetDeletionTimestamp().IsZero()
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

func clusterOfRole(_ context.Context, obj client.Object) []reconcile.Request {
	cluster := obj.GetLabels()[clusterLabel]
	if cluster == "" || obj.GetName() != identity.Role(cluster) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: cluster}}}
}

func clusterOfSpace(_ context.Context, obj client.Object) []reconcile.Request {
	cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(obj.GetName())
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: cluster}}}
}

// Reconcile brings the rights of the agent of one cluster up to date.
func (e *entitler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return loop.Result(loop.Run(ctx, &entitlement{name: req.Name}, e.read, e.awaitCluster, e.revokeUnserved, e.grant))
}

// entitlement is what the phases of one pass find out and pass on to later phases.
type entitlement struct {
	name    string
	cluster *clusterv1alpha1.Cluster // nil for one that does not exist, yet or any more
	current *rbacv1.ClusterRole      // the role of its agent; nil for none
}

// read reads the cluster, and the rights that its agent has.
func (e *entitler) read(ctx context.Context, s *entitlement) (loop.Next, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := e.hub.Get(ctx, client.ObjectKey{Name: s.name}, cluster)
	if client.IgnoreNotFound(err) != nil {
		return loop.Next{}, fmt.Errorf("read cluster %s: %w", s.name, err)
	}
	if err == nil {
		s.cluster = cluster
	}
	s.current, err = e.rights.roleOf(ctx, s.name)
	return loop.Next{}, err
}

// awaitCluster ends the pass for a registration whose Cluster does not exist yet, and for a Cluster that is gone.
func (e *entitler) awaitCluster(ctx context.Context, s *entitlement) (loop.Next, error) {
	if s.cluster != nil {
		return loop.Next{}, nil
	}
	again, err := e.await(ctx, s.name, s.current)
	return loop.Next{Done: true, After: again}, err
}

// revokeUnserved takes the rights away from what serves no cluster in pull mode, and ends the pass.
func (e *entitler) revokeUnserved(ctx context.Context, s *entitlement) (loop.Next, error) {
	if s.cluster.Spec.SyncMode == clusterv1alpha1.Pull && s.name != identity.Generator { // whose name no agent has
		return loop.Next{}, nil
	}
	return loop.Next{Done: true}, e.revoke(ctx, s.name, s.current)
}

// grant gives the agent what it lacks of its rights.
func (e *entitler) grant(ctx context.Context, s *entitlement) (loop.Next, error) {
	again, err := e.entitle(ctx, s.cluster, s.current)
	return loop.Next{After: again}, ignoreRaces(err)
}

// leaving is how often a namespace that is being deleted is checked.
const leaving = time.Second

// entitle gives the agent of a cluster in pull mode its rights, and returns when to
// look again; zero is when something changes.
func (e *entitler) entitle(ctx context.Context, cluster *clusterv1alpha1.Cluster, current *rbacv1.ClusterRole) (time.Duration, error) {
	annotations := map[string]string{}
	if current == nil || current.Annotations[identity.NotBeforeAnnotation] == "" || ofAnother(current, cluster) {
		// Certificates that were issued before this Cluster was created do not belong to it.
		annotations[identity.NotBeforeAnnotation] = cluster.CreationTimestamp.UTC().Format(time.RFC3339)
		annotations[identity.RegisteredByAnnotation] = string(cluster.UID)
	}
	owner := metav1.NewControllerRef(cluster, clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.ResourceKindCluster))
	owner.BlockOwnerDeletion = nil
	given, err := e.rights.put(ctx, current, cluster.Name, annotations, []metav1.OwnerReference{*owner})
	if err != nil {
		return 0, err
	}
	if err := e.rights.give(ctx, cluster.Name, given, roles(cluster.Name)); err != nil {
		return 0, err
	}
	if current == nil || given.ResourceVersion != current.ResourceVersion {
		log.FromContext(ctx).Info("gave the agent of a cluster its rights")
	}
	return e.works(ctx, cluster.Name, given)
}

// ofAnother reports whether a role is that of an earlier Cluster of the same name,
// with which it would have gone in a moment.
func ofAnother(role *rbacv1.ClusterRole, cluster *clusterv1alpha1.Cluster) bool {
	owner := metav1.GetControllerOfNoCopy(role)
	return owner != nil && owner.UID != cluster.UID
}

// works gives an agent its rights to the Works of its cluster, in a namespace that
// is there: one that is made brings the cluster back. They outlast the namespace's
// deletion, since it is the agent that takes the finalizers off the Works.
func (e *entitler) works(ctx context.Context, cluster string, of *rbacv1.ClusterRole) (time.Duration, error) {
	space := &corev1.Namespace{}
	err := e.hub.Get(ctx, client.ObjectKey{Name: workv1alpha2.ExecutionNamespace(cluster)}, space)
	switch {
	case apierrors.IsNotFound(err):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read the namespace of the Works of %s: %w", cluster, err)
	case space.DeletionTimestamp.IsZero():
		return 0, e.rights.give(ctx, cluster, of, []local{workRole(cluster)})
	}
	left := &workv1alpha1.WorkList{}
	if err := e.hub.List(ctx, left, client.InNamespace(space.Name), client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("list the Works of %s: %w", cluster, err)
	}
	if len(left.Items) > 0 {
		return leaving, nil
	}
	return 0, e.rights.release(ctx, cluster)
}

// await keeps the rights of a registration whose Cluster is to come, for some
// time. What belonged to a Cluster goes with it.
func (e *entitler) await(ctx context.Context, cluster string, current *rbacv1.ClusterRole) (time.Duration, error) {
	space := &corev1.Namespace{}
	if err := e.hub.Get(ctx, client.ObjectKey{Name: workv1alpha2.ExecutionNamespace(cluster)}, space); err == nil {
		if err := e.rights.release(ctx, cluster); err != nil { // nothing holds a namespace that no cluster has
			return 0, ignoreRaces(err)
		}
	}
	if current == nil || metav1.GetControllerOfNoCopy(current) != nil {
		return 0, nil
	}
	now := e.clock.Now()
	if !pending(current, now) {
		return 0, e.revoke(ctx, cluster, current)
	}
	since, err := time.Parse(time.RFC3339, current.Annotations[identity.NotBeforeAnnotation])
	if err != nil {
		return 0, err
	}
	return since.Add(pendingFor).Sub(now) + time.Second, nil
}

// revoke removes an agent's rights: what its role owns is garbage-collected.
func (e *entitler) revoke(ctx context.Context, cluster string, current *rbacv1.ClusterRole) error {
	if current == nil {
		return nil
	}
	if err := e.rights.release(ctx, cluster); err != nil {
		return ignoreRaces(err)
	}
	err := e.hub.Delete(ctx, current, client.Preconditions{UID: &current.UID, ResourceVersion: &current.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return ignoreRaces(fmt.Errorf("take the agent of %s its rights: %w", cluster, err))
	}
	log.FromContext(ctx).Info("took the agent of a cluster its rights")
	return nil
}

// ignoreRaces drops errors that somebody else's change has caused: that change
// brings the cluster back.
func ignoreRaces(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
