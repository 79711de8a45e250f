package template

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/debounce"
	"github.com/flotilla-io/flotilla/reconciler/decider"
	"github.com/flotilla-io/flotilla/reconciler/dedup"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
	"github.com/flotilla-io/flotilla/reconciler/template/predecessor"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Interpreter returns the size of a template.
type Interpreter interface {
	// Replicas returns the number of replicas of a template, and what each requires; known is false for kinds
	// that have no replicas.
	Replicas(obj *unstructured.Unstructured) (n int32, req *workv1alpha2.ReplicaRequirements, known bool, err error)
}

// Components is an optional ability of an Interpreter.
type Components interface {
	// Components returns the parts of a template that has several kinds of pods,
	// each with its own replicas; known is false for other kinds. If it is
	// true, Replicas is not called.
	Components(obj *unstructured.Unstructured) (parts []workv1alpha2.Component, known bool, err error)
}

// Decider decides where bindings run.
type Decider interface {
	// Decide returns the decision to write on b, and false if there is nothing to
	// write. It reserves capacity for b until the decision is withdrawn.
	Decide(ctx context.Context, b workv1alpha2.Binding) (decision placement.Decision, changed bool, err error)
	// Preview is Decide without a reservation.
	Preview(ctx context.Context, b workv1alpha2.Binding) (decision placement.Decision, changed bool, err error)
	// Withdraw drops the last decision on b, which was not written.
	Withdraw(b workv1alpha2.Binding)
}

// Options tune the loop. The zero value is the default.
type Options struct {
	// Workers is how many templates are reconciled concurrently; zero means 8.
	Workers int
	// Skip says what is never propagated, beyond what can never be.
	Skip propagation.SkipRules
	// Debounce is for how long the write of a binding about which nothing is
	// decided is delayed, while its Works, which need not wait for it (see
	// PlacementUnchanged), are written. Edits that follow each other in that time cost one write. Zero
	// writes at once, which is necessary if no loop calls PlacementUnchanged.
	Debounce time.Duration
	// NoPreemption keeps policies from taking templates that another policy has claimed.
	NoPreemption bool
	// NoPriority leaves the PriorityClasses that policies name out of bindings.
	NoPriority bool
	// NoComponents treats templates with several kinds of pods as one.
	NoComponents bool
	// StatusEvery is for how long the write of changed counts in the status of a policy
	// waits for further changes; zero means 2 s.
	StatusEvery time.Duration
	// Metrics is where the loop registers its metrics; nil registers none.
	Metrics prometheus.Registerer
	// Switches reports what is being switched from one revision to the next, and must be left as it is
	// until that is done; nil for nothing.
	Switches *revisiongate.Tracker
	// Clock is the real one if nil.
	Clock clock.PassiveClock
}

// Reconciler propagates templates. Use New.
type Reconciler struct {
	hub       client.Client
	templates *templatestore.Store
	events    loop.Recorder
	opts      Options

	written  *writecache.Cache[workv1alpha2.Binding]
	inbox    loop.Inbox[templatestore.Key]
	policies *policies
	failures dedup.Messages[templatestore.Key]
	delayed  *debounce.Debouncer[templatestore.Key]

	reader  reader
	chooser chooser
	gate    revisionGate
	binder  binder
	dryRun  binder // decides what would be written, and reserves nothing
	writer  writer
	counts  counts
}

// New returns the loop. hub reads from a cache; templates must use Claims.
func New(hub client.Client, templates *templatestore.Store, decider Decider, interpreter Interpreter, events loop.Recorder, opts Options) *Reconciler {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Workers == 0 {
		opts.Workers = 8
	}
	if opts.StatusEvery == 0 {
		opts.StatusEvery = 2 * time.Second
	}
	r := &Reconciler{
		hub: hub, templates: templates, events: events, opts: opts,
		written: writecache.New[workv1alpha2.Binding](opts.Clock),
		delayed: debounce.New[templatestore.Key](debounce.Options{Wait: opts.Debounce, MaxWait: 4 * opts.Debounce, Clock: opts.Clock}),
	}
	r.policies = newPolicies(hub, templates, &r.inbox, opts)
	catalog := r.policies.catalog
	r.reader = reader{template: templates.Get, binding: r.binding}
	r.chooser = chooser{skip: opts.Skip, noPreemption: opts.NoPreemption, find: catalog.find, candidates: catalog.candidates, exists: catalog.overrideExists}
	r.gate = newRevisionGate(r.chooser.owner, opts.Switches, func(key templatestore.Key) { r.inbox.Add(key, false) })
	r.binder = newBinder(interpreter, decider, catalog, opts)
	r.binder.ran = func(ctx context.Context, key templatestore.Key, p *policyv1alpha1.Placement) ([]workv1alpha2.TargetCluster, error) {
		return predecessor.Clusters(ctx, hub, bindings.KeyOf(key), p)
	}
	r.dryRun = r.binder
	r.dryRun.decide = decider.Preview
	r.writer = writer{hub: hub, written: r.written, put: templates.Put, gone: templates.Gone, debounce: r.delayed.Delay, withdraw: decider.Withdraw, clock: opts.Clock}
	r.counts = newCounts(opts.Metrics, opts.Clock)
	return r
}

func newBinder(interpreter Interpreter, decider Decider, catalog *catalog, opts Options) binder {
	bind := binder{replicas: interpreter.Replicas, decide: decider.Decide, newID: uuid.NewString}
	if parts, ok := interpreter.(Components); ok && !opts.NoComponents {
		bind.components = parts.Components
	}
	if !opts.NoPriority {
		bind.priority = catalog.priority
	}
	return bind
}

// state is what the phases pass on.
type state struct {
	key templatestore.Key
	// template is nil if a complete watch has no such object.
	template *unstructured.Unstructured
	// binding is nil if there is none.
	binding workv1alpha2.Binding
	// policy carries the template; nil if none does.
	policy policyv1alpha1.Policy
	// from is the policy from which policy takes the template; nil if it does not.
	from policyv1alpha1.Policy
	// activation reports whether the policy acts on the template now. If it does not, digest is
	// that of the template before the claim was set.
	activation propagation.Activation
	digest     string
	// claim is the patch that sets the claim on the template; nil if it has it.
	// claimed is true once that is written.
	claim   []byte
	claimed bool
	// desired is the binding to be written; nil if none is.
	desired workv1alpha2.Binding
	// decision is the placement in desired; nil if none was due.
	decision *placement.Decision
	// delayed is true if the binding is written a little later.
	delayed bool
	// awaits is true while the template's replicas, or the rest of its revision, are not known yet.
	awaits bool
	// left is true if the template left its revision and is still propagated: it does not return to clusters from
	// which it was pruned.
	left bool
	// pending are the events to emit once everything is written.
	pending []decider.Event
}

// Reconcile brings one template's binding up to date.
func (r *Reconciler) Reconcile(ctx context.Context, key templatestore.Key) (reconcile.Result, error) {
	s := state{key: key}
	next, err := loop.Run(ctx, &s, r.reader.run, r.writer.sweep, r.counts.matched(r.chooser.run), r.gate.wait, r.counts.applied(claim, r.binder.run, r.writer.run))
	if !s.delayed {
		r.delayed.Forget(key)
	}
	if s.template != nil {
		for _, n := range s.pending {
			n.Emit(r.events, s.template, s.desired)
		}
	}
	if !s.awaits {
		r.policies.report.statistics.Visited(key, s.about(), r.reportFailure(&s, err), r.opts.Clock.Now())
	}
	return loop.Result(next, err)
}

// binding returns the binding under key, own writes included.
func (r *Reconciler) binding(ctx context.Context, key client.ObjectKey) (workv1alpha2.Binding, bool, error) {
	cached, found, err := bindings.Get(ctx, r.hub, key)
	if err != nil {
		return nil, false, err
	}
	b, found := r.written.Latest(key, cached, found)
	return b, found, nil
}

// Claims returns the permanent ids of the policies that claim a template, for
// the store's index.
func Claims(obj *unstructured.Unstructured) []string {
	if ref, ok := propagation.Claimed(obj); ok {
		return []string{ref.ID}
	}
	return nil
}

// kindOf returns the kind that a selector names.
func kindOf(s *policyv1alpha1.ResourceSelector) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(s.APIVersion, s.Kind)
}
