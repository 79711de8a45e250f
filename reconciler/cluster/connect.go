package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/taskgroup"
)

// connect opens the connection to a member and starts watching it. A working connection is
// kept while the Secret is missing or broken: that is a fault on the hub, and says nothing
// about the member.
func (r *Reconciler) connect(ctx context.Context, s *state) (loop.Next, error) {
	p := r.watches.get(s.cluster.Name)
	if p != nil && p.uid != s.cluster.UID {
		r.watches.stop(s.cluster.Name) // left from a deleted Cluster of the same name
		p = nil
	}
	if p != nil && p.suits(s.cluster) {
		s.seen = p.seen
		return loop.Next{}, nil
	}
	edits := r.watches.edits.Load()
	target, err := r.target(ctx, s.cluster)
	if err == nil {
		target.Marks = r.opts.Marks
		target.Claimant, err = r.claim.identity(ctx, s.cluster.Name)
	}
	if err == nil {
		err = r.watch(ctx, s, target, edits)
	}
	switch {
	case err == nil:
		return loop.Next{}, nil
	case !errors.Is(err, members.ErrCredentials):
		return loop.Next{}, err
	case p != nil:
		log.FromContext(ctx).Info("Keeping the connection that stands", "reason", err.Error())
		s.seen = p.seen
		return loop.Next{After: r.opts.Period}, nil
	default:
		s.seen = &observation{outcome: outcome{reason: clusterv1alpha1.ClusterStatusCollectionFailedReason, message: err.Error()}}
		return loop.Next{After: r.opts.Period}, nil
	}
}

// target reads how to connect to a cluster.
func (r *Reconciler) target(ctx context.Context, cluster *clusterv1alpha1.Cluster) (members.Target, error) {
	if r.opts.Target != nil {
		return r.opts.Target(ctx, cluster)
	}
	ref := cluster.Spec.SecretRef
	if ref == nil {
		return members.Target{}, fmt.Errorf("%w: spec.secretRef names no secret", members.ErrCredentials)
	}
	secret := &corev1.Secret{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, secret)
	if apierrors.IsNotFound(err) {
		return members.Target{}, fmt.Errorf("%w: secret %s/%s does not exist", members.ErrCredentials, ref.Namespace, ref.Name)
	}
	if err != nil {
		return members.Target{}, fmt.Errorf("read secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	return members.TargetOf(cluster, secret)
}

// watch connects to a member and watches it, in place of the connection before. edits is how many changes of
// Secrets were known before the target was read.
func (r *Reconciler) watch(ctx context.Context, s *state, target members.Target, edits uint64) error {
	member, err := r.registry.Connect(target)
	if err != nil {
		return fmt.Errorf("%w: %w", members.ErrCredentials, err)
	}
	next := &memberWatch{member: member, observed: &observed{}, uid: s.cluster.UID, generation: s.cluster.Generation, certified: certified(s.cluster)}
	if notify, name := r.OnCapacity, s.cluster.Name; notify != nil {
		next.observed.tracker.More = func() { notify(name) }
	}
	next.observed.tracker.Changed = r.OnNodes
	models := r.opts.models(s.cluster)
	began := false
	s.seen, began = r.watches.start(next, edits, models, func() *taskgroup.Task {
		return r.tasks.Go(r.observer(member, next.observed, s.cluster, func(o observation) { r.watches.observed(next, o) }).run)
	})
	if began {
		log.FromContext(ctx).Info("Watching a member", "endpoint", target.Config.Host)
	}
	return nil
}

// clustersOfSecret names the clusters whose credentials are in a Secret.
func (r *Reconciler) clustersOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	var clusters clusterv1alpha1.ClusterList
	if err := r.hub.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list clusters")
		return nil
	}
	var out []reconcile.Request
	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		ref := cluster.Spec.SecretRef
		if ref == nil || ref.Namespace != secret.GetNamespace() || ref.Name != secret.GetName() {
			continue
		}
		r.watches.secretChanged(cluster.Name)
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(cluster)})
	}
	return out
}
