package commitstatus

import (
	"context"
	"fmt"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/expression"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/debounce"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/origins"
	"github.com/flotilla-io/flotilla/reconciler/secrets/inherited"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Gatherer reports the health of objects in the members.
type Gatherer interface {
	// Parts returns a part per propagated object among the entries that the named
	// Kustomization applied.
	Parts(ctx context.Context, owner client.ObjectKey, entries []inventory.Entry) ([]rollup.Part, error)
	// RemainingParts returns a part per object that clusters still hold of those that left the
	// Kustomization.
	RemainingParts(ctx context.Context, owner client.ObjectKey, removed []inventory.ID) ([]rollup.Part, error)
}

// Options tune the loop. The zero value of a field stands for its default.
type Options struct {
	// Clock is the real one if nil.
	Clock clock.PassiveClock
	// Every is how often a status that stays pending may change; default 10 s, and more rarely
	// the longer it does. A change of state is reported at once.
	Every time.Duration
	// TargetURL is where forges link to, with the Kustomization's namespace and
	// name appended; empty links nowhere.
	TargetURL string
	// AllowCrossNamespace lets a Kustomization use a source of another namespace.
	AllowCrossNamespace bool
	// Secrets knows what must not be shown of an object.
	Secrets *inherited.Known
	// Concurrent is how many Kustomizations are reconciled concurrently, one less at
	// most of one namespace; default 3, at least 2.
	Workers int
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Every <= 0 {
		o.Every = defaultEvery
	}
	if o.Workers <= 0 {
		o.Workers = defaultConcurrent
	}
	o.Workers = fairqueue.Workers(o.Workers)
	return o
}

const (
	defaultEvery      = 10 * time.Second
	defaultConcurrent = 3
	// confirmTime is how long a success must last before it is reported, and longestConfirm how
	// long where one commit succeeds after the other.
	confirmTime    = 500 * time.Millisecond
	longestConfirm = 10 * time.Second
)

// Reconciler keeps CommitStatus objects in line with Kustomizations. Use New.
type Reconciler struct {
	hub      client.Client
	gatherer Gatherer
	events   loop.Recorder
	opts     Options
	statuses statuses
	// expressions compiles the CEL expressions of Providers.
	expressions *expression.Compiler
	// successes are commits that succeed, and were not reported as such yet.
	successes *debounce.Debouncer[client.ObjectKey]
	followed  *followed
	alerts    alerts
}

// New returns the loop.
func New(hub client.Client, gatherer Gatherer, events loop.Recorder, opts Options) *Reconciler {
	opts = opts.withDefaults()
	kept := &followed{byKey: map[client.ObjectKey]*memory{}}
	return &Reconciler{
		hub: hub, gatherer: gatherer, events: events, opts: opts,
		expressions: expression.NewCompiler(expression.Limits{}),
		successes:   debounce.New[client.ObjectKey](debounce.Options{Wait: confirmTime, MaxWait: longestConfirm, Clock: opts.Clock}),
		statuses:    statuses{hub: hub, written: writecache.New[*gitopsv1alpha1.CommitStatus](opts.Clock), followed: kept, clock: opts.Clock, every: opts.Every},
		followed:    kept,
		alerts:      alerts{hub: hub, crossNamespace: opts.AllowCrossNamespace, secrets: opts.Secrets},
	}
}

// state is what the phases find out about one Kustomization.
type state struct {
	key      client.ObjectKey
	ks       *kustomizev1.Kustomization
	parents  []string       // the Kustomization that applied it, who applied that, and so on
	source   origins.Object // when the Kustomization was read; nil for none
	targets  []target
	fault    error                                   // of an Alert
	existing map[string]*gitopsv1alpha1.CommitStatus // by name
	verdict  verdict
}

// Reconcile computes the statuses of one Kustomization and writes what differs.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s := &state{key: req.NamespacedName}
	return loop.Result(loop.Run(ctx, s, r.read, r.sweep, r.judge, r.confirm, r.write))
}

// read reads the Kustomization, the Alerts that ask for a status of its commits, and the existing statuses.
func (r *Reconciler) read(ctx context.Context, s *state) (loop.Next, error) {
	s.ks = &kustomizev1.Kustomization{}
	err := r.hub.Get(ctx, s.key, s.ks)
	if client.IgnoreNotFound(err) != nil {
		return loop.Next{}, fmt.Errorf("read the Kustomization: %w", err)
	}
	if err != nil || s.ks.DeletionTimestamp != nil && !isPruneBlocked(s.ks) {
		r.forget(s.key)
		return loop.Next{Done: true}, nil
	}
	if s.source, err = sourceOf(ctx, r.hub, s.ks, r.opts.AllowCrossNamespace); err != nil {
		return loop.Next{}, err
	}
	if s.parents, err = parentsOf(ctx, r.hub, s.ks); err != nil {
		return loop.Next{}, err
	}
	if !s.nameless() {
		if s.targets, s.fault, err = r.alerts.targets(ctx, s.ks); err != nil {
			return loop.Next{}, err
		}
	}
	if s.fault != nil {
		r.complain(s, gitopsv1alpha1.CommitStatusReasonProviderNotReady, s.fault)
	}
	s.existing, err = r.statuses.of(ctx, s.ks.Namespace, aboutKustomization(s.ks.Name))
	return loop.Next{}, err
}

// nameless reports whether a Kustomization is at an artifact that names no commit, so that no commit has a status.
func (s *state) nameless() bool {
	at := s.ks.Status.LastAttemptedRevision
	return s.source != nil && at != "" && at == origins.Revision(s.source) && commitOf(s.committed(at)) == ""
}

// committed is the revision of a repository that a revision of the source stands for; empty if none is known.
func (s *state) committed(revision string) string {
	var artifact *meta.Artifact
	if s.source != nil {
		artifact = s.source.GetArtifact()
	}
	return origins.Committed(s.ks, artifact, revision)
}

// isPruneBlocked reports whether a Kustomization that is being deleted is blocked because it would remove too much.
func isPruneBlocked(ks *kustomizev1.Kustomization) bool {
	ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
	return ready != nil && ready.Reason == inventory.ReasonPruneBlocked && ready.ObservedGeneration == ks.Generation
}

// forget drops what is kept of a Kustomization of which nothing is to be reported.
func (r *Reconciler) forget(key client.ObjectKey) {
	r.successes.Forget(key)
	r.followed.forget(key)
}

// sweep deletes the CommitStatuses that no Alert asks for any more.
func (r *Reconciler) sweep(ctx context.Context, s *state) (loop.Next, error) {
	wanted := map[string]bool{}
	for _, t := range s.targets {
		wanted[t.name] = true
	}
	if err := r.statuses.sweep(ctx, s.existing, wanted); err != nil {
		return loop.Next{}, err
	}
	if len(s.targets) == 0 && s.fault == nil {
		r.forget(s.key)
	}
	return loop.Next{Done: len(s.targets) == 0}, nil
}

// confirm delays the report of a success for a while. What the members run is
// read from caches, which may be a moment behind the Kustomization's own status; one
// that waits for health has looked for itself.
func (r *Reconciler) confirm(_ context.Context, s *state) (loop.Next, error) {
	sure := s.verdict.state != gitopsv1alpha1.CommitSuccess || apimeta.IsStatusConditionTrue(s.ks.Status.Conditions, meta.HealthyCondition)
	for _, t := range s.targets {
		have := s.existing[t.name]
		sure = sure || have != nil && have.Spec.Commit == t.commit && have.Spec.State == gitopsv1alpha1.CommitSuccess
	}
	if sure {
		r.successes.Forget(s.key)
		return loop.Next{}, nil
	}
	wait := r.successes.Delay(s.key, commitOf(s.verdict.revision))
	return loop.Next{Done: wait > 0, After: max(wait, 0)}, nil
}

// write writes the statuses that differ, the only place that does.
func (r *Reconciler) write(ctx context.Context, s *state) (loop.Next, error) {
	var out loop.Next
	for _, t := range s.targets {
		after, err := r.keep(ctx, s, t)
		if err != nil {
			return loop.Next{}, err
		}
		if out.After == 0 || (after != 0 && after < out.After) {
			out.After = after
		}
	}
	return out, nil
}

// retryPeriod is how soon it is checked again whether something is known by then.
const retryPeriod = time.Second

// keep writes one CommitStatus if it differs. It returns when to come back if a
// change is held back, because the last one was a moment ago.
func (r *Reconciler) keep(ctx context.Context, s *state, t target) (time.Duration, error) {
	contextName, err := contextOf(ctx, r.expressions, ofKustomization(s.ks, t), t, s.verdict)
	if err != nil {
		r.complain(s, meta.InvalidCELExpressionReason, r.opts.Secrets.Clean(t.provider, err))
		return 0, nil
	}
	desired := r.desired(s, t, contextName)
	have := s.existing[t.name]
	if have != nil && !matches(have, desired) && stands(have, s.verdict, t.commit) {
		return retryPeriod, nil
	}
	return r.statuses.put(ctx, have, desired)
}

// keyOf returns the Kustomization that a CommitStatus is about, or the name that the loop of sources has for
// what it is about.
func keyOf(cs *gitopsv1alpha1.CommitStatus) client.ObjectKey {
	if cs.Spec.KustomizationRef == nil {
		return keyOfSource(cs.Namespace, sourceRefOf(cs))
	}
	return client.ObjectKey{Namespace: cs.Namespace, Name: cs.Spec.KustomizationRef.Name}
}

// complain reports once why nothing is posted about a commit.
func (r *Reconciler) complain(s *state, reason string, err error) {
	if r.followed.complains(s.key, reason, err.Error()) {
		r.events.Event(s.ks, corev1.EventTypeWarning, reason, err.Error())
	}
}
