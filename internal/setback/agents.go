package setback

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// Agents compare the marks of their members themselves with the runs that the store
// has recorded, and report the result in the Lease that they renew anyway: they
// may have seen more than any member that the hub asks itself.

// Agents records the present run in the store. That is needed once something has changed
// that agents may mark, or one of them is silent: a start after which nothing changes
// writes nothing. It is written once, and a second time with the revision that it was
// written at: until then no agent can have taken it for the last one.
func (k *Keeper) Agents(ctx context.Context) error {
	if err := k.Begin(ctx); err != nil {
		return err
	}
	k.mu.Lock()
	run, at, runs := k.run, k.wrote, k.runs
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
	err := k.change(ctx, func(h hubclaim.History) (_ hubclaim.History, changed bool) {
		h, run, changed = runs.without(h, at).DelaysBegin(run.ID, at)
		return h, changed
	})
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.run.ID == run.ID {
		k.run.Began = at
	}
	return nil
}

// errNotYet says that a mark is ahead of all that the hub has seen of the cluster: the
// hub's watch may still bring it.
var errNotYet = errors.New("it has seen more of the hub than the hub's own watch so far")

// Heard weighs the report of a cluster's agent. Last says that the hub's watch has had
// the time to show what the agent has seen. Errors: what the hub answered, or that this
// should be reported again.
func (k *Keeper) Heard(ctx context.Context, cluster string, r hubclaim.Report, last bool) error {
	if err := k.Begin(ctx); err != nil {
		return err
	}
	if hold := k.Hold(); hold != nil && slices.Contains(hold.Clusters, cluster) && !hold.Grows(&r.Mark) {
		return nil // one report of an agent is enough
	}
	k.mu.Lock()
	behind := r.Behind || k.history.Behind(&r.Mark, k.runs.id, math.MaxInt64)
	// Agents use the last recorded run, which may be the one before this:
	// then they have seen what has changed since, and so does the hub.
	later := r.ID != k.runs.id && !k.history.Forgives(&r.Mark) && r.Revision > k.began
	known := k.first > 0 && r.Revision >= k.first && k.seen[cluster] >= r.Revision
	k.mu.Unlock()
	if !behind && later && !known && !last {
		return errNotYet
	}
	if !behind && !(later && !known) {
		return nil
	}
	return k.weigh(ctx, cluster, &r.Mark, true)
}

// agents keeps the reports of agents until they are weighed. Use newAgents.
type agents struct {
	wake chan struct{}

	mu      sync.Mutex
	needed  bool                       // the present run is to be recorded
	silent  map[string]bool            // clusters in pull mode that were not heard since the start
	pull    bool                       // there is one
	reports map[string]hubclaim.Report // by cluster: not weighed yet
	tries   map[string]int             // by cluster: how often that could not be weighed
}

func newAgents() *agents {
	return &agents{wake: make(chan struct{}, 1), silent: map[string]bool{}, reports: map[string]hubclaim.Report{}, tries: map[string]int{}}
}

// any reports whether there is a cluster in pull mode.
func (a *agents) any() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pull
}

// need requests that the present run is recorded, if there is a cluster in pull mode.
func (a *agents) need() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.needed = true
	a.stir()
}

// stir wakes run. The lock is held.
func (a *agents) stir() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// follow reads Clusters and their Leases.
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
			a.meet(c.Name)
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
		if before != nil {
			a.alive(lease.Name)
		}
		text := lease.Annotations[clusterv1alpha1.MarkAnnotation]
		if was, ok := before.(*coordinationv1.Lease); ok && was.Annotations[clusterv1alpha1.MarkAnnotation] == text {
			return
		}
		if report, ok := hubclaim.ParseReport(text); ok {
			a.learn(lease.Name, report)
		}
	}
	if _, err := leases.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { hear(nil, obj) }, UpdateFunc: hear}); err != nil {
		return fmt.Errorf("watch leases: %w", err)
	}
	return nil
}

// meet records that there is a cluster in pull mode.
func (a *agents) meet(cluster string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.silent[cluster]; known {
		return
	}
	a.silent[cluster], a.pull = true, true
	a.stir()
}

// alive records that an agent renews its Lease.
func (a *agents) alive(cluster string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.silent[cluster] = false
}

// learn keeps an agent's report.
func (a *agents) learn(cluster string, r hubclaim.Report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reports[cluster] != r {
		a.reports[cluster] = r
		delete(a.tries, cluster)
	}
	a.stir()
}

const (
	// again is how soon what could not be weighed is weighed again, and enoughTries how
	// often, where the hub's watch is waited for.
	again       = time.Second
	enoughTries = 5
	// roll is how long after a start all agents should have been heard.
	roll = time.Minute
)

// run weighs the reports of agents until ctx ends.
func (a *agents) run(ctx context.Context, k *Keeper) {
	called := time.NewTimer(roll)
	defer called.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-called.C:
			a.callRoll()
			continue
		case <-a.wake:
		}
		for err := a.weigh(ctx, k); err != nil && ctx.Err() == nil; err = a.weigh(ctx, k) {
			if !errors.Is(err, errNotYet) {
				log.FromContext(ctx).Info("What agents have seen of the hub is not weighed yet", "reason", err.Error())
			}
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

// callRoll records the present run if an agent was not heard: it may have
// seen what was lost, and report it when the store has grown past it.
func (a *agents) callRoll() {
	a.mu.Lock()
	missing := false
	for _, silent := range a.silent {
		missing = missing || silent
	}
	a.mu.Unlock()
	if missing {
		a.need()
	}
}

// weigh weighs all marks that were reported. What could not be weighed is kept.
func (a *agents) weigh(ctx context.Context, k *Keeper) error {
	a.mu.Lock()
	needed, say := a.needed && a.pull, a.reports
	a.reports = map[string]hubclaim.Report{}
	a.mu.Unlock()
	var all error
	if needed {
		all = k.Agents(ctx)
	}
	for cluster, r := range say {
		a.mu.Lock()
		last := a.tries[cluster] >= enoughTries
		a.mu.Unlock()
		err := k.Heard(ctx, cluster, r, last)
		a.mu.Lock()
		if errors.Is(err, errNotYet) {
			a.tries[cluster]++
		}
		if _, newer := a.reports[cluster]; err != nil && !newer {
			a.reports[cluster] = r
		}
		if err == nil {
			delete(a.tries, cluster)
		}
		a.mu.Unlock()
		all = errors.Join(all, err)
	}
	return all
}
