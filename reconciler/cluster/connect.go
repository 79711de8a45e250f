package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/taskgroup"
)

// post is where one member is watched from.
type post struct {
	member     *members.Member
	task       *taskgroup.Task
	sums       *summary
	uid        types.UID // of the Cluster that the connection was made for
	generation int64     // of the same
	certified  string    // the name that its certificate is checked for
	stale      bool      // its Secret has changed since
	seen       *observation
}

// suits reports whether the connection is the one that the Cluster asks for.
func (p *post) suits(cluster *clusterv1alpha1.Cluster) bool {
	return !p.stale && p.uid == cluster.UID && p.generation == cluster.Generation && p.certified == certified(cluster)
}

// certified returns the name that the member's certificate is checked for, if it
// is not that of its address.
func certified(cluster *clusterv1alpha1.Cluster) string {
	return cluster.Annotations[clusterv1alpha1.TLSServerNameAnnotation]
}

// connect opens the connection to a member and has it watched. A connection that
// stands is kept while the Secret is missing or broken: that is our trouble, not
// the member's.
func (r *Reconciler) connect(ctx context.Context, s *state) (loop.Next, error) {
	p := r.post(s.cluster.Name)
	if p != nil && p.uid != s.cluster.UID {
		r.dismiss(s.cluster.Name) // of a Cluster of the same name that is gone
		p = nil
	}
	if p != nil && p.suits(s.cluster) {
		s.seen = p.seen
		return loop.Next{}, nil
	}
	edits := r.edits.Load()
	target, err := r.target(ctx, s.cluster)
	if err == nil {
		target.Marks = r.options.Marks
		target.Holder, err = r.claim.holder(ctx, s.cluster.Name)
	}
	if err == nil {
		err = r.station(ctx, s, target, edits)
	}
	switch {
	case err == nil:
		return loop.Next{}, nil
	case !errors.Is(err, members.ErrCredentials):
		return loop.Next{}, err
	case p != nil:
		log.FromContext(ctx).Info("Keeping the connection that stands", "reason", err.Error())
		s.seen = p.seen
		return loop.Next{After: r.options.Period}, nil
	default:
		s.seen = &observation{outcome: outcome{reason: clusterv1alpha1.ClusterStatusCollectionFailedReason, message: err.Error()}}
		return loop.Next{After: r.options.Period}, nil
	}
}

// target reads how to connect to a cluster.
func (r *Reconciler) target(ctx context.Context, cluster *clusterv1alpha1.Cluster) (members.Target, error) {
	if r.options.Target != nil {
		return r.options.Target(ctx, cluster)
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

// station has a member watched, and ends the watch over the one before. Edits is
// how many changes of Secrets were known before the target was read.
func (r *Reconciler) station(ctx context.Context, s *state, target members.Target, edits uint64) error {
	member, err := r.registry.Connect(target)
	if err != nil {
		return fmt.Errorf("%w: %w", members.ErrCredentials, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.posts[s.cluster.Name]
	if p != nil && p.member == member {
		p.generation, p.certified, p.stale = s.cluster.Generation, certified(s.cluster), r.edits.Load() != edits
		p.sums.countBy(r.options.models(s.cluster))
		s.seen = p.seen
		return nil
	}
	if p != nil {
		p.task.Stop()
	}
	next := &post{
		member: member, sums: &summary{},
		uid: s.cluster.UID, generation: s.cluster.Generation, certified: certified(s.cluster), stale: r.edits.Load() != edits,
	}
	next.sums.countBy(r.options.models(s.cluster))
	r.posts[s.cluster.Name] = next
	next.task = r.tasks.Go(r.observer(member, next.sums, s.cluster, func(o observation) { r.saw(next, o) }).run)
	log.FromContext(ctx).Info("Watching a member", "endpoint", target.Config.Host)
	return nil
}

// saw keeps what was seen of a member and brings its Cluster in.
func (r *Reconciler) saw(p *post, o observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := p.member.Name()
	if r.posts[name] != p {
		return
	}
	if before := p.seen; o.refused != "" && (before == nil || before.refused != o.refused) {
		r.recorder.Event(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: p.uid}}, corev1.EventTypeWarning,
			clusterv1alpha1.EventReasonCopyRefused, "A copy of this control plane, "+o.refused+", wanted to act in this cluster, and was refused: stop it")
	}
	p.seen = &o
	r.queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
}

func (r *Reconciler) post(cluster string) *post {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.posts[cluster]; p != nil {
		now := *p
		return &now
	}
	return nil
}

// dismiss ends the watch over a member and closes its connection.
func (r *Reconciler) dismiss(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.posts[cluster]; p != nil {
		p.task.Stop()
		delete(r.posts, cluster)
	}
	r.registry.Disconnect(cluster)
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
		r.mu.Lock()
		r.edits.Add(1)
		if p := r.posts[cluster.Name]; p != nil {
			p.stale = true
		}
		r.mu.Unlock()
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(cluster)})
	}
	return out
}
