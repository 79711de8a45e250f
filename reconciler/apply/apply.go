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
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/apply/cascadingdeletion"
	"github.com/flotilla-io/flotilla/reconciler/apply/clusterprune"
	"github.com/flotilla-io/flotilla/reconciler/apply/dependencies"
	"github.com/flotilla-io/flotilla/reconciler/apply/finalization"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/apply/impersonation"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/apply/limits"
	"github.com/flotilla-io/flotilla/reconciler/apply/metrics"
	"github.com/flotilla-io/flotilla/reconciler/apply/remotecluster"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/apply/suspended"
	"github.com/flotilla-io/flotilla/reconciler/apply/switchover"
	"github.com/flotilla-io/flotilla/reconciler/apply/target"
	"github.com/flotilla-io/flotilla/reconciler/apply/termination"
	"github.com/flotilla-io/flotilla/reconciler/apply/transientrefusals"
	"github.com/flotilla-io/flotilla/reconciler/apply/watches"
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
	// Awaits reports the same of one that may not be applied yet, or that it is as when it was asked before.
	Awaits(ctx context.Context, in builder.Input, from string) (applied, before bool)
	// Forget drops what is kept of a Kustomization that is gone.
	Forget(key client.ObjectKey)
}

// Assessor judges the health of objects on the hub and in the members.
type Assessor interface {
	// Assess returns how the objects of a request fare.
	Assess(ctx context.Context, req health.Request) (health.Assessment, error)
	termination.Clusters
}

// Options tune the loop. The zero value of a field stands for its default.
type Options struct {
	// Clock is the real one if nil.
	Clock clock.PassiveClock
	// Brake limits deletions; inventory.DefaultBrake if nil.
	Brake *inventory.Brake
	// Tenancy says who acts for Kustomizations, and what they may refer to.
	Tenancy tenancy.Rules
	// Workers is how many Kustomizations are reconciled at a time; default 5, at least 2. One
	// namespace gets at most one less, so that no tenant takes all workers.
	Workers int
	// Places limit what the runs of all loops do at a time, fairly by tenant; the loop makes its own if nil.
	Places *places.Places
	// Metrics is where the loop registers its metrics; nil registers none.
	Metrics prometheus.Registerer
	// Secrets learns what each Kustomization knows; nil for nobody.
	Secrets *inherited.Known
	// Applier tunes how sets are applied.
	Applier applier.Options
}

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
	Templates watches.Templates
	// Switches make other loops see a revision as a whole (see docs/design/0009). If nil, they see each write.
	Switches switchover.Switches
}

// Reconciler applies Kustomizations. Use New.
type Reconciler struct {
	deps          Deps
	opts          Options
	prerequisites prerequisites
	applier       *applier.Applier
	actors        *impersonation.Actors
	lastApplied   *lastAppliedStates
	drift         driftCorrector
	store         kustomizations.Store
	finalizer     finalizer
	losses        *cascadingdeletion.Counter
	successors    *successors
	pruner        pruner
	switcher      switcher
	suspended     *suspended.Keeper
	runs          *runs.Runs
	counts        metrics.Counts
}

// New returns the loop. It errs if the connection's settings are unusable.
func New(deps Deps, opts Options) (*Reconciler, error) {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Brake == nil {
		opts.Brake = ptr.To(inventory.DefaultBrake())
	}
	if opts.Workers <= 0 {
		opts.Workers = defaultWorkers
	}
	opts.Workers = fairqueue.Workers(opts.Workers)
	if opts.Places == nil {
		opts.Places = places.New(places.Options{})
	}
	actors, err := impersonation.New(deps.Hub, deps.Live, deps.Config, opts.Tenancy)
	if err != nil {
		return nil, err
	}
	lost, err := cascadingdeletion.New(deps.Live, deps.Config)
	if err != nil {
		return nil, err
	}
	applier := applier.New(deps.Live, deps.Hub.RESTMapper(), opts.Applier)
	own := kustomizations.New(deps.Hub, deps.Live, opts.Clock)
	successors := newSuccessors(deps, opts.Tenancy, actors, own, opts.Clock)
	targets := target.New(deps.Hub.Scheme(), deps.Egress, opts.Applier)
	groups := switchover.New(deps.Hub, deps.Live, successors.siblings, successors.differs, opts.Clock)
	left := termination.New(deps.Assessor, deps.Live, deps.Hub.RESTMapper())
	pruner := pruner{assessor: deps.Assessor, applier: applier, actors: actors, clusters: clusterprune.New(deps.Hub), remains: left}
	return &Reconciler{
		deps:          deps,
		opts:          opts,
		prerequisites: prerequisites{hub: deps.Hub, allowCrossNamespace: opts.Tenancy.AllowCrossNamespace, dependencies: dependencies.New(deps.Hub), limits: limits.New(deps.Hub, opts.Tenancy), targets: targets},
		applier:       applier,
		actors:        actors,
		lastApplied:   newLastAppliedStates(opts.Clock),
		drift:         driftCorrector{Restorer: lastgood.New(deps.Builder, applier), actors: actors, owed: debtor{pruner, successors}, pending: transientrefusals.New(deps.Hub), clock: opts.Clock},
		store:         own,
		finalizer:     finalizer{finalization.New(finalization.Deps{Applier: applier, Actors: actors, Siblings: successors.siblings, Losses: lost, Brake: *opts.Brake, Live: deps.Live, Retirements: switchover.NewRetirements(groups, deps.Templates), Switches: deps.Switches}), remotecluster.Remover{Targets: targets, Actors: actors, Live: deps.Live}, deps.Events},
		losses:        lost,
		successors:    successors,
		pruner:        pruner,
		switcher:      switcher{switches: deps.Switches, groups: groups, store: own, applier: applier, actors: actors, successors: successors, clock: opts.Clock},
		suspended:     suspended.New(own, left),
		runs:          runs.New(),
		counts:        metrics.New(opts.Metrics, opts.Clock),
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
	ks, found, err := r.store.Read(ctx, req.NamespacedName)
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
	if ks, err = r.store.AddFinalizer(ctx, ks); err != nil {
		return reconcile.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, min(ks.GetTimeout(), longestRun))
	defer cancel()

	s := &state{ks: ks, owner: req.NamespacedName, now: r.opts.Clock.Now(), last: r.lastApplied.of(req.NamespacedName)}
	r.opts.Secrets.Learn(ks, &s.last.secrets)
	next, err := loop.Run(ctx, s,
		r.prerequisites.findSource,
		impersonate(r.actors, r.applier),
		checkLastApplied,
		r.prerequisites.validate,
		loop.Unless((*state).isCurrent,
			places.Phase(r.awaitDependencies), places.Phase(r.successors.awaitSiblings), places.Phase(r.skipUnchanged),
			r.prerequisites.awaitApproval, places.Phase(stagemetrics.Phases(r.counts.Build, r.build))),
		r.applyToRemoteCluster,
		loop.Unless((*state).isCurrent, stagemetrics.Phases(r.counts.Apply,
			places.Phase(r.observe), r.dryRun, places.Phase(r.successors.refuseSharedObjects), places.Phase(r.successors.planPrune), r.guardDeletions,
			r.finalizer.reportLeftBehind, places.Phase(r.switcher.recordInventory), r.apply, r.switcher.complete, r.pruner.restoreToClusters,
		)),
		r.pruner.findPendingPrune,
		places.Phase(r.assessHealth),
		places.Phase(r.pruner.assessReplacement),
		r.pruner.prune,
		r.pruner.findTerminating,
		r.successors.awaitHandover,
		reportHealth,
	)
	if err != nil && (runs.Superseded(ctx) || errors.Is(err, kustomizations.ErrChanged)) {
		return reconcile.Result{}, err // no Event: Reconcile has it run again
	}
	if s.yields && err == nil {
		return reconcile.Result{RequeueAfter: next.After, Priority: ptr.To(lastInLine)}, nil
	}
	err = s.clean(r.drift.awaitIfTransient(ctx, s, r.drift.correct(ctx, s, err)), reasonFailed)
	if err := r.recordStatus(ctx, s, err); err != nil {
		return reconcile.Result{}, err
	}
	result, err := loop.Result(s.last.nextCheck(next, err, s.now, r.opts.Clock.Now()))
	if s.sameContent {
		result.Priority = ptr.To(0) // not lastInLine, with which it was queued when it yielded
	}
	return result, err
}

// quietly ends a run after which nothing is said, and tells when to run again; zero goes on.
func (s *state) quietly(again time.Duration) loop.Next {
	s.yields = again > 0
	return loop.Next{Done: s.yields, After: again}
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
	actor   impersonation.Actor
	plan    applier.Plan
	stale   stale
	waiting wait // what the health check still waits for

	switchover switchProgress
}

// built identifies the objects that a revision was built to: their digest, and their size in bytes of JSON.
type built struct {
	digest string
	bytes  int64
}

// standing says how the revision of a run compares with what was applied before.
type standing struct {
	current       bool // the revision is applied already, and no check for drift is due
	again         bool // the revision is applied already, by the spec as it is
	sameContent   bool // the revision is a new one, but its files that count here are those of the one before
	unchanged     bool // the same of one that is not tried yet, as the run waits for a dependency
	waitsAsBefore bool // not unchanged, but the same as the one that began to wait
	drift         bool // the revision is applied already, and a check for drift is due, or an object is known to be gone
	writes        extent
	tried         bool // its build was begun
	yields        bool // the revision changes nothing here: the run ends, and is repeated behind others (lastInLine)
	// driftCorrected says what was brought back of the revision before, while this one is refused; empty for nothing. taken are
	// objects of that revision, or of what is leaving, that other Kustomizations own by now.
	driftCorrected string
	taken          []inventory.ID
	owed           owed // what went, while this one is refused, that the revision before had dropped
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

// stale is what the Kustomization owns and its revision does not hold any more.
type stale struct {
	siblings.Handover
	// retained are the objects that nobody wants any more, and that stay until what replaces them is applied; clusters
	// in which it is (replaced) may remove them earlier. unreplaced says that the replacement is not applied everywhere
	// yet, where the run does not wait for health. nowhere names what of it never will be, as no policy carries it.
	retained   []inventory.Entry
	replaced   rollup.Replaced
	unreplaced bool
	nowhere    string
	// known says that the run has found out what leaves; refused that the brake refused to delete any of it.
	known, refused bool
	// descendants are the objects that leave with a Kustomization that leaves, by that Kustomization.
	descendants map[inventory.ID][]inventory.ID
	// undecided is, for a Kustomization that is being deleted, what others were to take over.
	undecided []inventory.ID
	// terminating is what members still run of what left this revision, or an earlier one.
	terminating termination.Found
}

// all returns the entries that left the revision and that the Kustomization still owns.
func (l stale) all() []inventory.Entry {
	return slices.Concat(l.Deleted, l.Staying(), l.retained)
}

// isCurrent is for phases that are skipped for a revision that is applied already, unless a check for drift is due.
func (s *state) isCurrent() bool { return s.current }

func (r *Reconciler) forget(ctx context.Context, key client.ObjectKey) {
	r.lastApplied.forget(key)
	r.opts.Secrets.Forget(key)
	r.applier.Forget(key)
	r.prerequisites.targets.Forget(key)
	r.successors.siblings.Forget(key)
	r.deps.Builder.Forget(key)
	r.store.Forget(key)
	r.suspended.Forget(key)
	r.drift.pending.Forget(key)
	r.switcher.end(ctx, key, nil)
}

// recordStatus writes the outcome of a run to the status, if that differs, and emits the events.
func (r *Reconciler) recordStatus(ctx context.Context, s *state, err error) error {
	outcome := loop.As(err, reasonFailed)
	s.last.record(s, outcome, r.opts.Clock.Now())
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
	if err := r.store.PatchStatus(ctx, s.ks, after); err != nil {
		if s.waiting.assessed {
			doubt(s.last, true)
		}
		return err
	}
	if s.switchover.done {
		r.switcher.end(ctx, s.owner, s.stale.Staying())
	}
	for _, e := range eventsOf(s, after, outcome) {
		message := s.hide(e.Message)
		r.deps.Events.Event(kustomizations.ForEvents(after, s.source.revision, s.source.origin), e.Type, e.Reason, message)
		log.FromContext(ctx).Info(message, "reason", e.Reason, "revision", s.source.revision)
	}
	s.ks = after
	return nil
}
