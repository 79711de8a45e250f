package decider

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// Options tune decisions. The zero value is the default.
type Options struct {
	// Placement is passed on to every decision.
	Placement placement.Options
	// NoReservations leaves out of account what was reserved for other bindings and
	// does not show in what clusters report yet.
	NoReservations bool
	// Mapper finds the definitions of kinds, so that clusters that these are on
	// their way to count as serving them. Nil: what clusters report counts alone.
	Mapper meta.RESTMapper
	// Estimators say what fits in clusters; what these report counts where none does.
	Estimators Estimators
	// Metrics is where decisions are counted; nil counts for nobody.
	Metrics prometheus.Registerer
	// StartupGrace is how long after Lead nothing is moved off clusters that are lost: what is
	// stored of them was written by the former leader.
	StartupGrace time.Duration
	// Clock is the real one if nil.
	Clock clock.PassiveClock
}

// Decider decides where bindings run, for all loops that place them. Many
// decisions are made at the same time, each on what is known at its beginning,
// and committed one after the other: one that was overtaken in what it relied on
// is made again. It is safe for use by several goroutines. Use New.
type Decider struct {
	hub           client.Reader
	snapshots     *snapshots
	opts          Options
	reservations  *reservations
	estimates     *estimates
	unschedulable *Unschedulable
	counts        counts
	lead          leadership
	// turn is held for reading by decisions that commit, and for writing by those that
	// were overtaken too often and must commit alone.
	turn sync.RWMutex
}

// New returns a decider for the clusters and bindings that hub, a cache,
// knows.
func New(hub client.Reader, opts Options) *Decider {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	d := &Decider{hub: hub, snapshots: newSnapshots(hub), opts: opts, unschedulable: newUnschedulable()}
	d.counts = newCounts(opts.Metrics, d.unschedulable.depth)
	d.reservations = newReservations(opts.Clock, d.unschedulable.MoreCapacity)
	d.reservations.disabled, d.reservations.assumptions.kept = opts.NoReservations, opts.Estimators.any()
	d.estimates = newEstimates(opts.Estimators, opts.Clock, d.reservations.assumed)
	return d
}

// optimism is how often a decision may be overtaken.
const optimism = 3

// Decide returns the decision to write on b, and false where that is nothing.
// The capacity that the decision takes is reserved for b from here on: a caller that
// does not write it says so by Withdraw.
func (d *Decider) Decide(ctx context.Context, b workv1alpha2.Binding) (placement.Decision, bool, error) {
	began := d.opts.Clock.Now()
	decision, changed, err := d.DecideBy(ctx, b, scheduling)
	d.counts.decided(d.opts.Clock.Since(began), decision, changed, err)
	return decision, changed, err
}

// Rule decides about a binding, and returns false where nothing is to be written.
type Rule struct {
	// Asks returns the clusters of which it counts what fits there.
	Asks func(b workv1alpha2.Binding, in placement.Situation, opts placement.Options) []string
	// Decide must be a function of what it is given.
	Decide func(b workv1alpha2.Binding, in placement.Situation, opts placement.Options) (placement.Decision, bool)
}

// scheduling is the scheduler's rule.
var scheduling = Rule{placement.Asks, placement.Decide}

// DecideBy is Decide by another rule than the scheduler's.
func (d *Decider) DecideBy(ctx context.Context, b workv1alpha2.Binding, rule Rule) (placement.Decision, bool, error) {
	for range optimism {
		decision, changed, asOf, err := d.evaluate(ctx, b, rule)
		if err != nil || !changed || d.commit(b, &decision, asOf) {
			return decision, changed, err
		}
	}
	d.turn.Lock()
	defer d.turn.Unlock()
	decision, changed, asOf, err := d.evaluate(ctx, b, rule)
	if err == nil && changed {
		d.reservations.commit(b, &decision, asOf)
	}
	return decision, changed, err
}

// Preview is Decide without a reservation.
func (d *Decider) Preview(ctx context.Context, b workv1alpha2.Binding) (placement.Decision, bool, error) {
	return d.PreviewBy(ctx, b, scheduling)
}

// PreviewBy is Preview by another rule than the scheduler's.
func (d *Decider) PreviewBy(ctx context.Context, b workv1alpha2.Binding, rule Rule) (placement.Decision, bool, error) {
	decision, changed, _, err := d.evaluate(ctx, b, rule)
	return decision, changed, err
}

// Clusters are those that there are now. They must not be changed.
func (d *Decider) Clusters(ctx context.Context) (*placement.Snapshot, error) {
	return d.snapshots.Current(ctx)
}

// Available are the clusters, with what was reserved subtracted.
func (d *Decider) Available(ctx context.Context) (placement.Snapshot, error) {
	base, err := d.snapshots.Current(ctx)
	if err != nil {
		return placement.Snapshot{}, err
	}
	clusters, _ := d.reservations.snapshot(base, true)
	return clusters, nil
}

// Remaining is placement.Remaining on the clusters that there are now.
func (d *Decider) Remaining(ctx context.Context, b workv1alpha2.Binding) ([]workv1alpha2.TargetCluster, bool, error) {
	clusters, err := d.snapshots.Current(ctx)
	if err != nil {
		return nil, false, err
	}
	targets, some := placement.Remaining(b, *clusters, d.opts.Placement.SchedulerName)
	return targets, some, nil
}

// Lead says that the loops begin to act now. Clusters are believed to be lost once there was
// time to hear of them.
func (d *Decider) Lead() { d.lead.at.Store(d.opts.Clock.Now().UnixNano()) }

// leadership is since when the loops act.
type leadership struct{ at atomic.Int64 } // in nanoseconds; 0: they do not

// options returns those of placements now.
func (l *leadership) options(o *Options) placement.Options {
	out := o.Placement
	if at := l.at.Load(); at != 0 {
		out.Failover.HeardBy = time.Unix(0, at).Add(o.StartupGrace)
	}
	return out
}

// Unschedulable is the queue of those that could not be placed.
func (d *Decider) Unschedulable() *Unschedulable { return d.unschedulable }

// Withdraw gives back what the last decision reserved for b: it was not written.
func (d *Decider) Withdraw(b workv1alpha2.Binding) { d.reservations.withdraw(b) }

func (d *Decider) commit(b workv1alpha2.Binding, decision *placement.Decision, asOf uint64) bool {
	d.turn.RLock()
	defer d.turn.RUnlock()
	return d.reservations.commit(b, decision, asOf)
}

// evaluate decides on the present state, and returns the commit that the state is as of.
func (d *Decider) evaluate(ctx context.Context, b workv1alpha2.Binding, rule Rule) (placement.Decision, bool, uint64, error) {
	base, err := d.snapshots.Current(ctx)
	if err != nil {
		return placement.Decision{}, false, 0, err
	}
	clusters, asOf := d.reservations.snapshot(base, placement.IsWorkload(b.BindingSpec()))
	if clusters, err = d.arriving(ctx, b, clusters); err != nil {
		return placement.Decision{}, false, 0, err
	}
	peers, err := d.peers(ctx, b)
	if err != nil {
		return placement.Decision{}, false, 0, err
	}
	in, opts := placement.Situation{Clusters: clusters, Peers: peers, Now: d.opts.Clock.Now()}, d.lead.options(&d.opts)
	if d.opts.Estimators.any() {
		in.Estimates, in.Unreported = d.estimates.of(ctx, b, rule.Asks(b, in, opts), clusters)
	}
	decision, changed := rule.Decide(b, in, opts)
	return decision, changed, asOf, nil
}

// arriving counts clusters that the definition of b's kind is on its way to as
// serving it.
func (d *Decider) arriving(ctx context.Context, b workv1alpha2.Binding, clusters placement.Snapshot) (placement.Snapshot, error) {
	ref := &b.BindingSpec().Resource
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	if _, defined := placement.Definition(schema.GroupResource{Group: gvk.Group}); !defined || d.opts.Mapper == nil {
		return clusters, nil
	}
	mapping, err := d.opts.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return clusters, nil
	}
	if err != nil {
		return clusters, fmt.Errorf("find the definition of %s: %w", gvk.Kind, err)
	}
	name, _ := placement.Definition(mapping.Resource.GroupResource())
	definition := &workv1alpha2.ClusterResourceBinding{}
	err = d.hub.Get(ctx, client.ObjectKey{Name: name}, definition, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return clusters, nil
	case err != nil:
		return clusters, fmt.Errorf("read the binding of the definition of %s: %w", gvk.Kind, err)
	}
	return clusters.Arriving(definition, ref), nil
}
