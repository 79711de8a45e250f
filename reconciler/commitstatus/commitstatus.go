package commitstatus

import (
	"context"
	"fmt"
	"sync"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/expression"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Gatherer says how objects fare in the members.
type Gatherer interface {
	// Parts returns a part per propagated object among the entries that the named
	// Kustomization applied.
	Parts(ctx context.Context, owner client.ObjectKey, entries []inventory.Entry) ([]rollup.Part, error)
}

// Options tune the loop. The zero value of a field stands for its default.
type Options struct {
	// Clock is the real one if nil.
	Clock clock.PassiveClock
	// Every is how often a status that stays pending may change; default 10 s.
	// A change of state is told at once.
	Every time.Duration
	// TargetURL is where forges link to, with the Kustomization's namespace and
	// name appended; empty links nowhere.
	TargetURL string
	// AllowCrossNamespace lets a Kustomization use a source of another namespace.
	AllowCrossNamespace bool
	// Concurrent is how many Kustomizations are worked on at a time, one less at
	// most of one namespace; default 3, at least 2.
	Concurrent int
}

const (
	defaultEvery      = 10 * time.Second
	defaultConcurrent = 3
	// confirmTime is how long a success stands before it is told.
	confirmTime = 500 * time.Millisecond
)

// Reconciler keeps CommitStatus objects in line with Kustomizations. Use New.
type Reconciler struct {
	hub      client.Client
	gatherer Gatherer
	events   loop.Recorder
	opts     Options
	written  *writecache.Cache[*gitopsv1alpha1.CommitStatus]
	// expressions compiles those of Providers.
	expressions *expression.Compiler

	mu      sync.Mutex
	tracked map[client.ObjectKey]*track
}

// track is what the loop keeps of a Kustomization between runs. All of it can
// be lost.
type track struct {
	// owns are the objects whose bindings wake the Kustomization.
	owns map[inventory.ID]bool
	// changed is when each CommitStatus was written last.
	changed map[string]time.Time
	// succeeding is the commit that was first seen to succeed at since.
	succeeding string
	since      time.Time
	// complaint is the last event, so that it is not repeated.
	complaint string
}

// New returns the loop.
func New(hub client.Client, gatherer Gatherer, events loop.Recorder, opts Options) *Reconciler {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Every <= 0 {
		opts.Every = defaultEvery
	}
	if opts.Concurrent <= 0 {
		opts.Concurrent = defaultConcurrent
	}
	opts.Concurrent = fairqueue.Workers(opts.Concurrent)
	return &Reconciler{
		hub: hub, gatherer: gatherer, events: events, opts: opts,
		written:     writecache.New[*gitopsv1alpha1.CommitStatus](opts.Clock),
		tracked:     map[client.ObjectKey]*track{},
		expressions: expression.NewCompiler(expression.Limits{}),
	}
}

// Reconcile computes the statuses of one Kustomization and writes what differs.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var ks kustomizev1.Kustomization
	err := r.hub.Get(ctx, req.NamespacedName, &ks)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("read the Kustomization: %w", err)
	}
	if err != nil || ks.DeletionTimestamp != nil {
		r.untrack(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	targets, err := r.targets(ctx, &ks)
	if err != nil {
		return reconcile.Result{}, err
	}
	existing, err := r.existing(ctx, &ks)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.sweep(ctx, existing, targets); err != nil {
		return reconcile.Result{}, err
	}
	if len(targets) == 0 {
		r.untrack(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	verdict, found, err := r.judge(ctx, &ks)
	if err != nil || !found {
		return reconcile.Result{}, err
	}
	if wait := r.confirm(&ks, verdict, existing); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	var again time.Duration
	for _, target := range targets {
		after, err := r.keep(ctx, &ks, target, verdict, existing)
		if err != nil {
			return reconcile.Result{}, err
		}
		if again == 0 || (after != 0 && after < again) {
			again = after
		}
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// confirm returns how long a success has to stand before it is told. What the
// members run is read from caches, which may be a moment behind the
// Kustomization's own status; one that waits for health has looked for itself.
func (r *Reconciler) confirm(ks *kustomizev1.Kustomization, v verdict, existing map[string]*gitopsv1alpha1.CommitStatus) time.Duration {
	told := func(cs *gitopsv1alpha1.CommitStatus) bool {
		return cs.Spec.Commit == v.commit && cs.Spec.State == gitopsv1alpha1.CommitSuccess
	}
	sure := v.state != gitopsv1alpha1.CommitSuccess || apimeta.IsStatusConditionTrue(ks.Status.Conditions, meta.HealthyCondition)
	for _, cs := range existing {
		sure = sure || told(cs)
	}
	var wait time.Duration
	r.trackOf(client.ObjectKeyFromObject(ks), func(t *track) {
		now := r.opts.Clock.Now()
		switch {
		case sure:
			t.succeeding = ""
		case t.succeeding != v.commit:
			t.succeeding, t.since, wait = v.commit, now, confirmTime
		default:
			wait = confirmTime - now.Sub(t.since)
		}
	})
	return wait
}

// lookAgain is when to see whether something is known by then.
const lookAgain = time.Second

// existing returns the CommitStatuses of a Kustomization by name.
func (r *Reconciler) existing(ctx context.Context, ks *kustomizev1.Kustomization) (map[string]*gitopsv1alpha1.CommitStatus, error) {
	var list gitopsv1alpha1.CommitStatusList
	if err := r.hub.List(ctx, &list, client.InNamespace(ks.Namespace)); err != nil {
		return nil, fmt.Errorf("list commit statuses: %w", err)
	}
	out := map[string]*gitopsv1alpha1.CommitStatus{}
	for i := range list.Items {
		if about(&list.Items[i], ks.Name) {
			out[list.Items[i].Name] = &list.Items[i]
		}
	}
	for _, written := range r.written.Unseen(func(cs *gitopsv1alpha1.CommitStatus) bool {
		return cs.Namespace == ks.Namespace && about(cs, ks.Name)
	}) {
		if have := out[written.Name]; have == nil || writecache.Older(have.ResourceVersion, written.ResourceVersion) {
			out[written.Name] = written
		}
	}
	return out, nil
}

func about(cs *gitopsv1alpha1.CommitStatus, kustomization string) bool {
	return cs.Spec.KustomizationRef != nil && cs.Spec.KustomizationRef.Name == kustomization
}

// sweep deletes the CommitStatuses that no Alert asks for any more.
func (r *Reconciler) sweep(ctx context.Context, existing map[string]*gitopsv1alpha1.CommitStatus, targets []target) error {
	wanted := map[string]bool{}
	for _, t := range targets {
		wanted[t.name] = true
	}
	for name, cs := range existing {
		if wanted[name] {
			continue
		}
		if err := r.hub.Delete(ctx, cs, client.Preconditions{UID: &cs.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the commit status %s: %w", name, err)
		}
		r.written.Gone(client.ObjectKeyFromObject(cs))
	}
	return nil
}

// keep writes one CommitStatus if it differs. It returns when to come back if a
// change is held back, because the last one was a moment ago.
func (r *Reconciler) keep(ctx context.Context, ks *kustomizev1.Kustomization, t target, v verdict, existing map[string]*gitopsv1alpha1.CommitStatus) (time.Duration, error) {
	contextName, err := contextOf(ctx, r.expressions, ks, t, v)
	if err != nil {
		r.complain(ks, err)
		return 0, nil
	}
	desired := r.desired(ks, t, v, contextName)
	have := existing[t.name]
	if have == nil {
		if err := r.hub.Create(ctx, desired); err != nil {
			return 0, fmt.Errorf("create the commit status %s: %w", t.name, err)
		}
		r.wrote(ctx, desired)
		return 0, nil
	}
	if apiequality.Semantic.DeepEqual(have.Spec, desired.Spec) {
		return 0, nil
	}
	if stands(have, v) {
		return lookAgain, nil
	}
	if wait := r.delay(have, desired); wait > 0 {
		return wait, nil
	}
	after := have.DeepCopy()
	after.Spec = desired.Spec
	if err := r.hub.Patch(ctx, after, client.MergeFrom(have)); err != nil {
		return 0, fmt.Errorf("write the commit status %s: %w", t.name, err)
	}
	r.wrote(ctx, after)
	return 0, nil
}

// delay returns how long a change of words alone has to wait.
func (r *Reconciler) delay(have, desired *gitopsv1alpha1.CommitStatus) time.Duration {
	same := have.Spec.Commit == desired.Spec.Commit && have.Spec.State == desired.Spec.State && have.Spec.Context == desired.Spec.Context
	if !same || desired.Spec.State != gitopsv1alpha1.CommitPending {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tracked[keyOf(desired)]
	if t == nil {
		return 0
	}
	return r.opts.Every - r.opts.Clock.Since(t.changed[desired.Name])
}

func (r *Reconciler) wrote(ctx context.Context, cs *gitopsv1alpha1.CommitStatus) {
	r.written.Wrote(cs.DeepCopy())
	r.trackOf(keyOf(cs), func(t *track) { t.changed[cs.Name] = r.opts.Clock.Now() })
	log.FromContext(ctx).Info("commit status", "commit", cs.Spec.Commit, "state", cs.Spec.State, "description", cs.Spec.Description)
}

// keyOf returns the Kustomization that a CommitStatus is about.
func keyOf(cs *gitopsv1alpha1.CommitStatus) client.ObjectKey {
	return client.ObjectKey{Namespace: cs.Namespace, Name: cs.Spec.KustomizationRef.Name}
}

// complain tells once why a context cannot be computed.
func (r *Reconciler) complain(ks *kustomizev1.Kustomization, err error) {
	r.trackOf(client.ObjectKeyFromObject(ks), func(t *track) {
		if t.complaint != err.Error() {
			r.events.Event(ks, corev1.EventTypeWarning, meta.InvalidCELExpressionReason, err.Error())
		}
		t.complaint = err.Error()
	})
}

func (r *Reconciler) trackOf(key client.ObjectKey, change func(*track)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tracked[key] == nil {
		r.tracked[key] = &track{owns: map[inventory.ID]bool{}, changed: map[string]time.Time{}}
	}
	change(r.tracked[key])
}

func (r *Reconciler) untrack(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tracked, key)
}

// owners returns the Kustomizations that own an object.
func (r *Reconciler) owners(id inventory.ID) []client.ObjectKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []client.ObjectKey
	for key, t := range r.tracked {
		if t.owns[id] {
			keys = append(keys, key)
		}
	}
	return keys
}
