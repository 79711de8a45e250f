package setback

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/claims"
)

// Agents compare the marks of their members themselves, with the runs that the store
// has written down, and say in the Lease that they renew anyway what they found: they
// may know of more than any member that the hub asks itself.

// Agents has the store know of the present run, as the first cluster in pull mode
// needs it. It is written once, and a second time with the revision that it was
// written at: until then no agent can have taken it for the last one.
func (k *Keeper) Agents(ctx context.Context) error {
	if err := k.Begin(ctx); err != nil {
		return err
	}
	k.mu.Lock()
	run, at := k.run, k.wrote
	k.mu.Unlock()
	if run.ID == "" {
		var err error
		if run, at, err = k.start(ctx, 0); err != nil {
			return err
		}
	}
	if run.Began >= at {
		return nil
	}
	err := k.change(ctx, func(h claims.History) (_ claims.History, news bool) {
		h, run, news = h.Settles(k.id, at)
		return h, news
	})
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.run.Began = at
	return nil
}

// Heard weighs what the agent of a cluster says. Errors: what the hub answered.
func (k *Keeper) Heard(ctx context.Context, cluster string, r claims.Report) error {
	if err := k.Agents(ctx); err != nil {
		return err
	}
	if hold := k.Hold(); hold != nil && slices.Contains(hold.Clusters, cluster) {
		return nil // one word of an agent is enough
	}
	return k.weigh(ctx, cluster, &r.Mark, r.Behind)
}

// agents keeps what agents say until it is weighed. Use newAgents.
type agents struct {
	wake chan struct{}

	mu   sync.Mutex
	some bool                     // there is a cluster in pull mode
	say  map[string]claims.Report // by cluster: not weighed yet
}

func newAgents() *agents {
	return &agents{wake: make(chan struct{}, 1), say: map[string]claims.Report{}}
}

// follow takes in what Clusters and their Leases say.
func (a *agents) follow(ctx context.Context, from cache.Cache) error {
	clusters, err := from.GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	leases, err := from.GetInformer(ctx, &coordinationv1.Lease{})
	if err != nil {
		return fmt.Errorf("watch leases: %w", err)
	}
	learn := func(obj any) {
		if c, ok := obj.(*clusterv1alpha1.Cluster); ok && c.Spec.SyncMode == clusterv1alpha1.Pull {
			a.learn("", claims.Report{})
		}
	}
	if _, err := clusters.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: learn, UpdateFunc: func(_, obj any) { learn(obj) }}); err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	hear := func(before, after any) {
		lease, ok := after.(*coordinationv1.Lease)
		if !ok || lease.Namespace != workv1alpha2.NamespaceKarmadaCluster {
			return
		}
		text := lease.Annotations[clusterv1alpha1.MarkAnnotation]
		if was, ok := before.(*coordinationv1.Lease); ok && was.Annotations[clusterv1alpha1.MarkAnnotation] == text {
			return
		}
		if report, ok := claims.ParseReport(text); ok {
			a.learn(lease.Name, report)
		}
	}
	if _, err := leases.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { hear(nil, obj) }, UpdateFunc: hear}); err != nil {
		return fmt.Errorf("watch leases: %w", err)
	}
	return nil
}

// learn notes that there are agents and, with a cluster, what its own says.
func (a *agents) learn(cluster string, r claims.Report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.some && cluster == "" {
		return
	}
	if a.some = true; cluster != "" {
		a.say[cluster] = r
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// again is how soon what could not be weighed is weighed again.
const again = time.Second

// run weighs what agents say, until ctx ends.
func (a *agents) run(ctx context.Context, k *Keeper) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		}
		for err := a.weigh(ctx, k); err != nil && ctx.Err() == nil; err = a.weigh(ctx, k) {
			log.FromContext(ctx).Info("What agents have seen of the hub is not weighed yet", "reason", err.Error())
			timer := time.NewTimer(again)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
		}
	}
}

func (a *agents) weigh(ctx context.Context, k *Keeper) error {
	if err := k.Agents(ctx); err != nil {
		return err
	}
	for {
		cluster, r, ok := a.take()
		if !ok {
			return nil
		}
		if err := k.Heard(ctx, cluster, r); err != nil {
			a.learn(cluster, r)
			return err
		}
	}
}

func (a *agents) take() (cluster string, r claims.Report, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for cluster, r := range a.say {
		delete(a.say, cluster)
		return cluster, r, true
	}
	return "", claims.Report{}, false
}
