// Package silences calls a loop when nothing has been heard of a cluster for a while, and when it is heard of again.
//
// In go the Clusters of a cache; out come one call for each change that lasts, and the answer since when a cluster is
// silent. policies/silence decides. The package writes nothing; what it remembers of clusters may be lost.
package silences

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/silence"
)

// Options tune a Watch.
type Options struct {
	// After is how long nothing has to be heard of a cluster.
	After time.Duration
	// Since returns since when nothing is heard of a cluster; zero for one that is heard of.
	Since func(c *clusterv1alpha1.Cluster) time.Time
	// Turned is called after a cluster fell silent, or is heard of again, and after a pause in which it was silent for a while.
	// If it fails it is called again.
	Turned func(ctx context.Context, cluster string) error
	// Heard is called when a cluster is heard of again that Turned was not called for, as it comes and goes: for those that have
	// seen it silent meanwhile. If it fails it is called again. Nil means nobody.
	Heard func(ctx context.Context, cluster string) error
	// Clock is the time; nil means the machine's.
	Clock clock.PassiveClock
}

// Watch looks at clusters. Use New.
type Watch struct {
	hub  client.Reader
	opts Options

	mu sync.Mutex
	of map[string]silence.Cluster
}

// New returns a watch. hub reads from a cache.
func New(hub client.Reader, o Options) *Watch {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Watch{hub: hub, opts: o, of: map[string]silence.Cluster{}}
}

// Register adds the watch to mgr, under a name.
func (w *Watch) Register(mgr ctrl.Manager, name string) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(controller.Options{NewQueue: fairqueue.New[reconcile.Request]}).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(w.changes())).
		Complete(w)
	if err != nil {
		return fmt.Errorf("register %s: %w", name, err)
	}
	return nil
}

// changes passes clusters that come, go, fall silent or are heard of again.
func (w *Watch) changes() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			is, also := e.ObjectNew.(*clusterv1alpha1.Cluster)
			return ok && also && !w.opts.Since(was).Equal(w.opts.Since(is))
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// state is what the phases of one pass pass on.
type state struct {
	name string
	is   silence.Cluster
	next loop.Next
}

// Reconcile observes one cluster, and calls the loop where its silence began or ended.
func (w *Watch) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return loop.Result(loop.Run(ctx, &state{name: req.Name}, w.read, w.notify, w.record))
}

// read observes the cluster. One that is gone is forgotten.
func (w *Watch) read(ctx context.Context, s *state) (loop.Next, error) {
	is, again, found, err := w.observe(ctx, s.name)
	if err == nil && !found {
		w.keep(s.name, silence.Cluster{})
	}
	s.is, s.next.After = is, again
	return loop.Next{Done: !found}, err
}

// notify calls the loop. It comes before record, so that a call that failed is made again.
func (w *Watch) notify(ctx context.Context, s *state) (loop.Next, error) {
	call := w.opts.Heard
	switch was := w.known(s.name); {
	case was.Turns != s.is.Turns:
		call = w.opts.Turned
	case !was.Ends(s.is):
		call = nil
	}
	if call == nil {
		return loop.Next{}, nil
	}
	return loop.Next{}, call(ctx, s.name)
}

// record keeps what was observed, to compare the next observation with.
func (w *Watch) record(_ context.Context, s *state) (loop.Next, error) {
	w.keep(s.name, s.is)
	return s.next, nil
}

// Silent returns which of the clusters are silent, and since when. None that is heard of is among them.
func (w *Watch) Silent(ctx context.Context, clusters []string) (map[string]time.Time, error) {
	var out map[string]time.Time
	for _, name := range clusters {
		is, _, found, err := w.observe(ctx, name)
		if err != nil {
			return nil, err
		}
		if !found || !is.Silent {
			continue
		}
		if out == nil {
			out = map[string]time.Time{}
		}
		out[name] = is.Since
	}
	return out, nil
}

// observe decides about a cluster as it is now, and remembers nothing of that.
func (w *Watch) observe(ctx context.Context, name string) (is silence.Cluster, again time.Duration, found bool, err error) {
	var c clusterv1alpha1.Cluster
	err = w.hub.Get(ctx, client.ObjectKey{Name: name}, &c, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return is, 0, false, fmt.Errorf("read cluster %s: %w", name, err)
	}
	if err != nil {
		return is, 0, false, nil
	}
	is, again = w.known(name).Observe(w.opts.Since(&c), w.opts.After, w.opts.Clock.Now())
	return is, again, true, nil
}

func (w *Watch) known(name string) silence.Cluster {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of[name]
}

func (w *Watch) keep(name string, is silence.Cluster) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[name] = is; is == (silence.Cluster{}) {
		delete(w.of, name)
	}
}
