package unifiedauth

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/access"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// rights brings the hub's roles and bindings to the members that apply as the author:
// those of a namespace to where Works of its authors go, those of the whole cluster to
// where any author's do. Requests name a source, and, as their namespace, a cluster;
// with none all clusters that have to do with it.
type rights struct {
	hub     client.Client
	opts    Options
	skip    propagation.SkipRules
	works   works
	reach   *reach
	sources sources

	mu   sync.Mutex
	idle map[place]time.Time // since when nothing of a source's authors goes to a cluster
}

// place is a source of rights and a cluster.
type place struct {
	cluster string
	source  access.Source
}

func newRights(r *Reconciler) *rights {
	return &rights{hub: r.hub, opts: r.opts, skip: r.skip, works: r.works, reach: newReach(), sources: sources{hub: r.hub, skip: r.skip}, idle: map[place]time.Time{}}
}

// linger is how long rights stay in a cluster that no author's Work goes to any more:
// one that is deleted and made again brings none of them along.
const linger = 10 * time.Minute

// Reconcile makes the Works of one source what they should be.
func (r *rights) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	source := access.Source(req.Name)
	given, err := r.sources.given(ctx, source)
	if err != nil {
		return reconcile.Result{}, err
	}
	existing, err := r.sources.copies(ctx, source, req.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	namespace, _, _ := source.Split()
	clusters := r.reach.clusters(namespace)
	for cluster := range existing {
		clusters[cluster] = true
	}
	if req.Namespace != "" {
		clusters = map[string]bool{req.Namespace: true}
	}
	var out reconcile.Result
	var errs []error
	for cluster := range clusters {
		again, err := r.to(ctx, place{cluster, source}, given, existing[cluster])
		if errs = append(errs, err); again > 0 && (out.RequeueAfter == 0 || again < out.RequeueAfter) {
			out.RequeueAfter = again
		}
	}
	return out, errors.Join(errs...)
}

// to brings rights to one cluster, takes from it what it is to have no longer, and says
// when to look again.
func (r *rights) to(ctx context.Context, p place, given []access.Right, existing []*workv1alpha1.Work) (again time.Duration, err error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := r.hub.Get(ctx, client.ObjectKey{Name: p.cluster}, cluster, client.UnsafeDisableDeepCopy); err != nil {
		return 0, client.IgnoreNotFound(err) // its Works go with it
	}
	open, err := r.works.open(ctx, cluster)
	if err != nil || !open {
		return 0, err
	}
	if access.AppliesAsAuthor(cluster) {
		again = r.lingers(p, len(existing) > 0)
	}
	var errs []error
	planned := map[string]bool{}
	if again != 0 {
		for _, right := range given {
			work, err := right.Work(cluster)
			if err == nil {
				planned[work.Name] = true
				_, err = r.works.put(ctx, work)
			}
			errs = append(errs, err)
		}
	}
	for _, work := range existing {
		if !planned[work.Name] {
			errs = append(errs, r.works.remove(ctx, cluster, work.Name))
		}
	}
	return max(again, 0), errors.Join(errs...)
}

// lingers says how long a cluster is to have rights: always, which is less than zero,
// while Works of authors go there, and a while after.
func (r *rights) lingers(p place, has bool) time.Duration {
	namespace, _, _ := p.source.Split()
	reached := r.reach.has(p.cluster, namespace)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch since, idle := r.idle[p]; {
	case reached:
		delete(r.idle, p)
		return -1
	case !has:
		delete(r.idle, p)
		return 0
	case !idle:
		r.idle[p] = r.opts.Clock.Now()
		return linger
	default:
		if left := linger - r.opts.Clock.Since(since); left > 0 {
			return left
		}
		delete(r.idle, p)
		return 0
	}
}

// indexes are what the loop finds Works and bindings by.
func (r *rights) indexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, kind := range []client.Object{&rbacv1.RoleBinding{}, &rbacv1.ClusterRoleBinding{}} {
		if err := indexer.IndexField(ctx, kind, bindingsByRole, boundRole); err != nil {
			return fmt.Errorf("index bindings by their role: %w", err)
		}
	}
	if err := indexer.IndexField(ctx, &workv1alpha1.Work{}, rightsBySource, sourceOf); err != nil {
		return fmt.Errorf("index works by the rights that they bring: %w", err)
	}
	return nil
}

func sourceOf(work client.Object) []string {
	if source, is := access.Copied(work); is {
		return []string{string(source)}
	}
	return nil
}

func boundRole(binding client.Object) []string {
	var ref rbacv1.RoleRef
	switch b := binding.(type) {
	case *rbacv1.RoleBinding:
		ref = b.RoleRef
	case *rbacv1.ClusterRoleBinding:
		ref = b.RoleRef
	}
	if ref.Kind != access.ClusterRoleKind {
		return nil
	}
	return []string{ref.Name}
}
