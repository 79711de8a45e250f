package apply

import (
	"context"
	"errors"
	"slices"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/internal/runs"
	"github.com/flotilla-io/flotilla/internal/stagemetrics"
	"github.com/flotilla-io/flotilla/policies/omissions"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/apply/actors"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/apply/counts"
	"github.com/flotilla-io/flotilla/reconciler/apply/dependencies"
	"github.com/flotilla-io/flotilla/reconciler/apply/endings"
	"github.com/flotilla-io/flotilla/reconciler/apply/exchange"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/apply/limits"
	"github.com/flotilla-io/flotilla/reconciler/apply/losses"
	"github.com/flotilla-io/flotilla/reconciler/apply/outside"
	"github.com/flotilla-io/flotilla/reconciler/apply/pending"
	"github.com/flotilla-io/flotilla/reconciler/apply/pruning"
	"github.com/flotilla-io/flotilla/reconciler/apply/remains"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/apply/suspended"
	"github.com/flotilla-io/flotilla/reconciler/apply/switchover"
	"github.com/flotilla-io/flotilla/reconciler/apply/target"
	"github.com/flotilla-io/flotilla/reconciler/apply/wakes"
	"github.com/flotilla-io/flotilla/reconciler/apply/wanted"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/secrets/inherited"
)

// Builder turns an artifact into objects.
type Builder interface {
	// Build returns the objects that the Kustomization's path holds in the
	// artifact, with its transformations, its variables and the labels of their
	// owner. Errors that only new content or a new spec can mend are of class
	// loop.ClassStalled.
	Build(ctx context.Context, in builder.Input) ([]*unstructured.Unstructured, error)
	// Same reports whether the artifact of in holds the same files, as far as the Kustomization reads
	// them, as the artifact with the digest from, from which it was last built with Input.Keep.
	Same(ctx context.Context, in builder.Input, from string) (bool, error)
	// Forget drops what is kept of a Kustomization that is gone.
	Forget(key client.ObjectKey)
}

// Assessor judges the health of objects on the hub and in the members.
type Assessor interface {
	// Assess returns how the objects of a request fare.
	Assess(ctx context.Context, req health.Request) (health.Assessment, error)
	remains.Clusters
}

// Options tune the loop. The zero value of a field stands for its default.
type Options struct {
	// Clock is the real one if nil.
	Clock clock.PassiveClock
	// Brake limits deletions; inventory.DefaultBrake if nil.
	Brake *inventory.Brake
	// Tenancy says who acts for Kustomizations, and what they may refer to.
	Tenancy tenancy.Rules
	// Concurrent is how many Kustomizations are reconciled at a time; default 5, at least 2. One
	// namespace gets at most one less, so that no tenant takes all workers.
	Concurrent int
	// Places limit what the runs of all loops do at a time, fairly by tenant; the loop makes its own if nil.
	Places *places.Places
	// Metrics is where the loop registers its metrics; nil registers none.
	Metrics prometheus.Registerer
	// Secrets are told what each Kustomization knows; nil tells nobody.
	Secrets *inherited.Known
	// Applier tunes how sets are applied.
	Applier applier.Options
}

const defaultConcurrent = 5

// Deps are what the loop works with.
type Deps struct {
	// Hub reads from the cache and writes.
	Hub client.Client
	// Live reads without a cache.
	Live client.Reader
	// Config reaches the hub, to act as a service account.
	Config *rest.Config
	// Builder builds artifacts.
	Builder Builder
	// Assessor judges health.
	Assessor Assessor
	// Egress reaches the clusters of spec.kubeConfig.
	Egress egress.Dialer
	// Events records what happened.
	Events loop.Recorder
	// Templates reports which templates others delete, and their labels. If nil, such objects wait for the interval.
	Templates wakes.Templates
	// Switches make other loops see a revision as a whole (see docs/design/0009). If nil, they see each write.
	Switches switchover.Switches
}

// Reconciler applies Kustomizations. Use New.
type Reconciler struct {
	deps        Deps
	opts        Options
	before      prerequisites
	applier     *applier.Applier
	actors      *actors.Actors
	lastApplied *lastAppliedStates
	lastGood    keeper
	own         kustomizations.Store
	remover     remover
	losses      *losses.Counter
	heritage    *heritage
	departures  departures
	switcher    switcher
	suspended   *suspended.Keeper
	runs        *runs.Runs
	counts      counts.Counts
}

// New returns the loop. It errs if the connection's settings are unusable.
func New(deps Deps, opts Options) (*Reconciler, error) {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Brake == nil {
		opts.Brake = ptr.To(inventory.DefaultBrake())
	}
	if opts.Concurrent <= 0 {
		opts.Concurrent = defaultConcurrent
	}
	opts.Concurrent = fairqueue.Workers(opts.Concurrent)
	if opts.Places == nil {
		opts.Places = places.New(places.Options{})
	}
	actors, err := actors.New(deps.Hub, deps.Live, deps.Config, opts.Tenancy)
	if err != nil {
		return nil, err
	}
	lost, err := losses.New(deps.Live, deps.Config)
	if err != nil {
		return nil, err
	}
	applier := applier.New(deps.Live, deps.Hub.RESTMapper(), opts.Applier)
	own := kustomizations.New(deps.Hub, deps.Live, opts.Clock)
	successors := newHeritage(deps, opts.Tenancy, actors, own)
	targets := target.New(deps.Hub.Scheme(), deps.Egress, opts.Applier)
	left := remains.New(deps.Assessor, deps.Live, deps.Hub.RESTMapper())
	return &Reconciler{
		deps:        deps,
		opts:        opts,
		before:      prerequisites{hub: deps.Hub, allowCrossNamespace: opts.Tenancy.AllowCrossNamespace, dependencies: dependencies.New(deps.Hub), limits: limits.New(deps.Hub, opts.Tenancy), targets: targets},
		applier:     applier,
		actors:      actors,
		lastApplied: newLastAppliedStates(opts.Clock),
		lastGood:    keeper{Keeper: lastgood.New(deps.Builder, applier), actors: actors, pending: pending.New(deps.Hub), clock: opts.Clock},
		own:         own,
		remover:     remover{endings.New(endings.Deps{Applier: applier, Actors: actors, Siblings: successors.siblings, Losses: lost, Brake: *opts.Brake, Live: deps.Live}), outside.Remover{Targets: targets, Actors: actors, Live: deps.Live}, deps.Events},
		losses:      lost,
		heritage:    successors,
		departures:  departures{assessor: deps.Assessor, applier: applier, actors: actors, pruner: pruning.New(deps.Hub), remains: left},
		switcher:    switcher{switches: deps.Switches, exchanges: exchange.New(deps.Hub, deps.Live, successors.siblings, wanted.Builds{Builder: deps.Builder}.Differs, opts.Clock), own: own, applier: applier, actors: actors, heritage: successors, clock: opts.Clock},
		suspended:   suspended.New(own, left),
		runs:        runs.New(),
		counts:      counts.New(opts.Metrics, opts.Clock),
	}, nil
}

// Reconcile brings one Kustomization's revision to the hub.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer r.counts.Reconciles.Begin(r.opts.Clock)()
	ctx, run := r.runs.Start(ctx, req.NamespacedName)
	defer run.End()
	ctx, end := r.opts.Places.Start(ctx, req.Namespace)
	defer end()
	result, err := r.reconcile(ctx, req, run)
	if err != nil && (runs.Superseded(ctx) || errors.Is(err, kustomizations.ErrChanged)) {
		return reconcile.Result{RequeueAfter: minimumPause}, nil // run again with the object as it is now
	}
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context, req reconcile.Request, run *runs.Run) (reconcile.Result, error) {
	ks, found, err := r.own.Read(ctx, req.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !found {
		r.forget(ctx, req.NamespacedName)
		return reconcile.Result{}, nil
	}
	run.WorksOn(ks)
	if ks.DeletionTimestamp != nil {
		return r.finalize(ctx, ks)
	}
	if ks.Spec.Suspend {
		r.switcher.end(ctx, req.NamespacedName, nil)
		return r.suspended.Keep(ctx, ks)
	}
	r.suspended.Forget(req.NamespacedName)
	if ks, err = r.own.Protect(ctx, ks); err != nil {
		return reconcile.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, min(ks.GetTimeout(), longestRun))
	defer cancel()

	s := &state{ks: ks, owner: req.NamespacedName, now: r.opts.Clock.Now(), last: r.lastApplied.of(req.NamespacedName)}
	r.opts.Secrets.Learn(ks, &s.last.secrets)
	next, err := loop.Run(ctx, s,
		r.before.findSource,
		identify(r.actors, r.applier),
		recognise,
		r.before.refuse,
		fresh(computing(r.awaitDependencies)),
		fresh(computing(r.compare)),
		fresh(computing(stagemetrics.Phases(r.counts.Build, r.build))),
		r.outside,
		fresh(stagemetrics.Phases(r.counts.Apply, computing(r.observe), r.check, computing(r.heritage.share), computing(r.heritage.leave), r.brake, r.remover.moved, computing(r.switcher.begin), r.apply, r.switcher.finish, r.departures.bring)),
		r.departures.depart,
		computing(r.assess),
		computing(r.departures.replace),
		r.departures.prune,
		r.departures.outlast,
		r.heritage.await,
		healthy,
	)
	if err != nil && (runs.Superseded(ctx) || errors.Is(err, kustomizations.ErrChanged)) {
		return reconcile.Result{}, err // nobody is told of that: Reconcile has it run again
	}
	if s.yields && err == nil {
		return reconcile.Result{RequeueAfter: next.After, Priority: ptr.To(lastInLine)}, nil
	}
	err = s.clean(r.lastGood.judge(ctx, s, r.lastGood.keep(ctx, s, err)), reasonFailed)
	if err := r.conclude(ctx, s, err); err != nil {
		return reconcile.Result{}, err
	}
	result, err := loop.Result(s.last.nextCheck(next, err, r.opts.Clock.Now()))
	if s.sameContent {
		result.Priority = ptr.To(0) // not lastInLine, with which it was queued when it yielded
	}
	return result, err
}

// lastInLine is the priority of a Kustomization for which a revision is known to change nothing: of the many that
// follow one source, those that the revision does change go first.
const lastInLine = -1

// state is what the phases of one run find out and pass on to later phases.
type state struct {
	ks     *kustomizev1.Kustomization
	owner  client.ObjectKey
	now    time.Time
	last   *lastApplied
	source source
	standing
	objects []*unstructured.Unstructured
	built
	desired []inventory.Entry
	diff    difference
	seen    applier.Observed
	actor   actors.Actor
	plan    applier.Plan
	leaving leaving
	waiting wait // what the health check still waits for

	switched switched
}

// built identifies the objects that a revision was built to: their digest, and their size in bytes of JSON.
type built struct {
	digest string
	bytes  int64
}

// standing says how the revision of a run compares with what was applied before.
type standing struct {
	current     bool // the revision is applied already, and no check for drift is due
	sameContent bool // the revision is a new one, but its files that count here are those of the one before
	// unchanged says the same of a revision that is not tried yet, as the run waits for a dependency.
	unchanged bool
	drift     bool // the revision is applied already, and a check for drift is due, or an object is known to be gone
	writes    extent
	tried     bool // its build was begun
	yields    bool // the revision changes nothing here: the run ends, and is repeated behind others (lastInLine)
	// kept says what was brought back of the revision before, while this one is refused; empty for nothing. taken are
	// objects of that revision, or of what is leaving, that other Kustomizations own by now.
	kept  string
	taken []inventory.ID
	// omitted lists what is not applied as the files have it.
	omitted omissions.List
}

// extent is how much of a revision, beyond its kinds and namespaces, a run has written.
type extent int

const (
	none extent = iota
	part
	whole
)

// difference is what the Kustomization owned before a revision, and how the revision differs from that.
type difference struct {
	inventory.Diff
	owned []inventory.Entry
	at    target.Target // the hub, or the cluster of spec.kubeConfig
}

// leaving is what the Kustomization owns and its revision does not hold any more.
type leaving struct {
	siblings.Leaving
	// kept are the objects that nobody wants any more, and that stay until what replaces them is applied; clusters
	// in which it is (replaced) may remove them earlier. unreplaced says that the replacement is not applied everywhere
	// yet, where the run does not wait for health. nowhere names what of it never will be, as no policy carries it.
	kept       []inventory.Entry
	replaced   rollup.Replaced
	unreplaced bool
	nowhere    string
	// known says that the run has found out what leaves; refused that the brake refused to delete any of it.
	known, refused bool
	// beneath are the objects that leave with a Kustomization that leaves, by that Kustomization.
	beneath map[inventory.ID][]inventory.ID
	// undecided is, for a Kustomization that is being deleted, what others were to take over.
	undecided []inventory.ID
	// left is what members still run of what left this revision, or an earlier one.
	left remains.Found
}

// all returns the entries that left the revision and that the Kustomization still owns.
func (l leaving) all() []inventory.Entry {
	return slices.Concat(l.Deleted, l.Staying(), l.kept)
}

// fresh skips a phase for a revision that is applied already, unless a check for drift is due.
func fresh(phase loop.Phase[state]) loop.Phase[state] {
	return func(ctx context.Context, s *state) (loop.Next, error) {
		if s.current {
			return loop.Next{}, nil
		}
		return phase(ctx, s)
	}
}

// computing makes a phase wait for one of the few places of its tenant to compute in.
func computing(phase loop.Phase[state]) loop.Phase[state] {
	return func(ctx context.Context, s *state) (loop.Next, error) {
		ctx, leave, err := places.Compute(ctx)
		if err != nil {
			return loop.Next{}, err
		}
		defer leave()
		return phase(ctx, s)
	}
}

func (r *Reconciler) forget(ctx context.Context, key client.ObjectKey) {
	r.lastApplied.forget(key)
	r.opts.Secrets.Forget(key)
	r.applier.Forget(key)
	r.before.targets.Forget(key)
	r.heritage.siblings.Forget(key)
	r.deps.Builder.Forget(key)
	r.own.Forget(key)
	r.suspended.Forget(key)
	r.lastGood.pending.Forget(key)
	r.switcher.end(ctx, key, nil)
}

// conclude writes the outcome of a run to the status, if that differs, and emits the events.
func (r *Reconciler) conclude(ctx context.Context, s *state, err error) error {
	outcome := loop.As(err, reasonFailed)
	s.last.conclude(s, outcome, r.opts.Clock.Now())
	_, leave, full := places.Compute(ctx) // a run that timed out gets no place, and reports its outcome all the same
	after := s.ks.DeepCopy()
	after.Status = statusOf(s, outcome, r.opts.Clock.Now())
	for i := range after.Status.Conditions {
		after.Status.Conditions[i].Message = s.hide(after.Status.Conditions[i].Message)
	}
	if full == nil {
		leave()
	}
	if turn, leave, err := places.Request(ctx); err == nil {
		ctx = turn
		defer leave()
	}
	if err := r.own.Publish(ctx, s.ks, after); err != nil {
		if s.waiting.assessed {
			doubt(s.last, true)
		}
		return err
	}
	if s.switched.done {
		r.switcher.end(ctx, s.owner, s.leaving.Staying())
	}
	for _, e := range eventsOf(s, after, outcome) {
		message := s.hide(e.message)
		r.deps.Events.Event(kustomizations.Told(after, s.source.revision, s.source.origin), e.kind, e.reason, message)
		log.FromContext(ctx).Info(message, "reason", e.reason, "revision", s.source.revision)
	}
	s.ks = after
	return nil
}
