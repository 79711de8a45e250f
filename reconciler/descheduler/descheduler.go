package descheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/deschedule"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/decider"
)

// Options tune the loop. The zero value is what production uses.
type Options struct {
	// Interval is how often bindings are looked at; zero means DefaultInterval.
	Interval time.Duration
	// Threshold is how long a pod must wait for a node; zero means DefaultThreshold.
	Threshold time.Duration
	// DryRun reports what would be moved, and moves nothing.
	DryRun bool
	// Scheduler is whose bindings are looked at; empty means the default.
	Scheduler string
	// Clock is the real one if nil.
	Clock clock.WithTicker
}

// Times of Karmada's descheduler.
const (
	DefaultInterval  = 2 * time.Minute
	DefaultThreshold = 5 * time.Minute
)

// reasonPlanned is that of Events of a dry run.
const reasonPlanned = "DescheduleBindingPlanned"

// timeout is how long a cluster may take to say what waits there.
const timeout = time.Second

// Waiters count the replicas of a workload that wait in a cluster for a node. They err where
// that is not known.
type Waiters func(ctx context.Context, cluster string, q Question) (int32, error)

// Question is which replicas are counted.
type Question struct {
	// Of is the workload.
	Of workv1alpha2.ObjectReference
	// Threshold is for how long they wait, or longer.
	Threshold time.Duration
	// Placed is when it was decided last where the workload runs.
	Placed time.Time
}

// Descheduler looks at all bindings now and then. Use New.
type Descheduler struct {
	hub     client.Client
	decider *decider.Decider
	waiters Waiters
	events  loop.Recorder
	opts    Options
	early   early
}

// New returns the loop. hub reads from a cache.
func New(hub client.Client, decider *decider.Decider, waiters Waiters, events loop.Recorder, opts Options) *Descheduler {
	if opts.Interval == 0 {
		opts.Interval = DefaultInterval
	}
	if opts.Threshold == 0 {
		opts.Threshold = DefaultThreshold
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	return &Descheduler{hub: hub, decider: decider, waiters: waiters, events: events, opts: opts, early: early{some: make(chan struct{}, 1)}}
}

// Register adds the loop to mgr.
func (d *Descheduler) Register(mgr ctrl.Manager) error {
	if err := mgr.Add(manager.RunnableFunc(d.follow)); err != nil {
		return fmt.Errorf("register the descheduler: %w", err)
	}
	return nil
}

// Run looks at all bindings once. One that fails keeps no other from its turn.
func (d *Descheduler) Run(ctx context.Context) error {
	return d.sweep(ctx, func(visit func(workv1alpha2.Binding)) error { return bindings.Each(ctx, d.hub, visit) })
}

// sweep looks at the bindings that are visited.
func (d *Descheduler) sweep(ctx context.Context, each func(visit func(workv1alpha2.Binding)) error) error {
	clusters, err := d.decider.Clusters(ctx)
	if err != nil {
		return err
	}
	type candidate struct {
		binding workv1alpha2.Binding
		short   []deschedule.Short
	}
	var all []candidate
	err = each(func(b workv1alpha2.Binding) {
		if short := deschedule.Candidates(b, *clusters, d.opts.Scheduler); len(short) > 0 {
			all = append(all, candidate{b, short})
		}
	})
	if err != nil {
		return err
	}
	var failed []error
	for _, c := range all {
		if ctx.Err() != nil {
			break
		}
		if err := d.deschedule(ctx, c.binding, d.count(ctx, c.binding, c.short)); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", client.ObjectKeyFromObject(c.binding), err))
		}
	}
	return errors.Join(failed...)
}

// count asks how many replicas wait in the clusters; those that do not say have none.
func (d *Descheduler) count(ctx context.Context, b workv1alpha2.Binding, short []deschedule.Short) []deschedule.Waiting {
	q := Question{Of: b.BindingSpec().Resource, Threshold: d.opts.Threshold}
	if record, decided := placement.RecordOf(b); decided {
		q.Placed = record.At.Time
	}
	var out []deschedule.Waiting
	for _, s := range short {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		n, err := d.waiters(ctx, s.Cluster, q)
		cancel()
		if err == nil && n > 0 {
			out = append(out, deschedule.Waiting{Short: s, Replicas: n})
		}
	}
	return out
}

// deschedule moves what waits, as far as there is room for it elsewhere.
func (d *Descheduler) deschedule(ctx context.Context, b workv1alpha2.Binding, waiting []deschedule.Waiting) error {
	if len(waiting) == 0 {
		return nil
	}
	var move deschedule.Move
	rule := decider.Rule{Asks: placement.AsksAnyway, Decide: func(b workv1alpha2.Binding, in placement.Situation, opts placement.Options) (placement.Decision, bool) {
		var some bool
		move, some = deschedule.Decide(b, in, opts, waiting)
		return move.Decision, some
	}}
	if d.opts.DryRun {
		_, some, err := d.decider.PreviewBy(ctx, b, rule)
		if some && err == nil {
			d.record(b, corev1.EventTypeNormal, reasonPlanned, "Dry run, nothing is changed: "+move.Message(d.opts.Threshold))
		}
		return err
	}
	_, some, err := d.decider.DecideBy(ctx, b, rule)
	if err != nil || !some {
		return err
	}
	desired := b.DeepCopyObject().(workv1alpha2.Binding)
	move.Put(desired)
	patch, differs, err := bindings.Patch(b, desired)
	if err == nil && differs {
		err = d.hub.Patch(ctx, desired, patch)
	}
	switch {
	case err != nil && bindings.IsStale(err): // the next time
		d.decider.Withdraw(b)
		return nil
	case err != nil:
		d.decider.Withdraw(b)
		d.record(b, corev1.EventTypeWarning, workv1alpha2.EventReasonDescheduleBindingFailed, err.Error())
		return fmt.Errorf("write the placement: %w", err)
	}
	log.FromContext(ctx).Info("descheduled", "binding", client.ObjectKeyFromObject(b), "from", placement.Text(move.From), "clusters", placement.Text(move.Clusters))
	d.record(b, corev1.EventTypeNormal, workv1alpha2.EventReasonDescheduleBindingSucceed, move.Message(d.opts.Threshold))
	return nil
}

// record emits the Event on the binding and on its template.
func (d *Descheduler) record(b workv1alpha2.Binding, kind, reason, message string) {
	d.events.Event(b, kind, reason, message)
	d.events.Event(bindings.TemplateRef(b), kind, reason, message)
}
