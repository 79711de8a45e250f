package binding

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/stagemetrics"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/binding/heard"
	"github.com/flotilla-io/flotilla/reconciler/dedup"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
	"github.com/flotilla-io/flotilla/reconciler/undelete"
	"github.com/flotilla-io/flotilla/reconciler/workrename"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Templates reads templates.
type Templates interface {
	// Get returns a template, and whether it is known to exist.
	Get(ctx context.Context, key templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error)
	// Want sets the kinds that owner needs.
	Want(owner any, kinds ...schema.GroupVersionKind)
	// Listen adds a listener before the store starts.
	Listen(l templatestore.Listener)
	// State returns what is known about a kind.
	State(gvk schema.GroupVersionKind) templatestore.State
}

// Options tune the loop. The zero value is the default.
type Options struct {
	// Workers is how many bindings are reconciled concurrently; zero means 8.
	Workers int
	// Parallel is how many Works of one binding are written concurrently;
	// zero means 16.
	Parallel int
	// PlacementUnchanged reports whether a changed template leaves the rest of its binding
	// unchanged: nothing on the binding would be decided
	// differently for it. Its Works are then written concurrently with the binding.
	// They wait until the binding has the template's version where
	// PlacementUnchanged returns false, or is nil.
	PlacementUnchanged func(ctx context.Context, template *unstructured.Unstructured, b workv1alpha2.Binding) bool
	// Undecided reports whether the binding of a template is still going to be decided
	// differently; nil means that it is not.
	Undecided func(ctx context.Context, template *unstructured.Unstructured, b workv1alpha2.Binding) bool
	// Switches reports what is being switched from one revision to the next, and the overrides
	// in force; if nil, the loop makes its own, without any switches.
	Switches *revisiongate.Tracker
	// Answers returns since when a cluster has been reachable, zero for always; whether it has been found
	// reachable since the time asked; and if not, when to ask again. If nil, the Cluster's
	// conditions decide.
	Answers func(cluster string, asked time.Time) (since time.Time, yes bool, again time.Duration)
	// HasWork checks in a cluster itself that it has all objects of a Work, before other clusters are
	// left for it. The error says what is missing; known is false if the cluster cannot be asked from here. If nil,
	// no cluster is asked.
	HasWork func(ctx context.Context, cluster string, work *workv1alpha1.Work) (known bool, err error)
	// Ends reports whether the Works of a cluster end when their binding is deleted, without
	// being deleted themselves; nil means that none do.
	Ends func(cluster *clusterv1alpha1.Cluster) bool
	// StaleFor is for how long the status of a Work is no reason to remove the template from another
	// cluster, if it was written before the loop began, or before the cluster of the Work last became reachable;
	// zero trusts it at once.
	StaleFor time.Duration
	// Evictions configures how failed clusters are evicted.
	Evictions Evictions
	// IgnoreQuotas lets overrides raise resources above what the quotas of the namespace have counted.
	IgnoreQuotas bool
	// Metrics is where the loop registers its metrics; nil registers none.
	Metrics prometheus.Registerer
	// Clock is the real one if nil.
	Clock clock.PassiveClock
}

// Reconciler writes Works. A request without a namespace names a
// ClusterResourceBinding. Use New.
type Reconciler struct {
	templates Templates
	events    loop.Recorder
	opts      Options

	works     *workLister
	freshness *heard.Freshness
	switches  *revisiongate.Tracker
	gate      *revisionGate
	inbox     loop.Inbox[ctrl.Request]
	failures  dedup.Messages[reported]
	reader    reader
	renderer  renderer
	writer    writer
	itself    bindingWriter
	counts    *stagemetrics.Stage
}

// New returns the loop. hub reads from a cache with the indexes of bindings, live
// from the control plane itself.
func New(hub client.Client, live client.Reader, templates Templates, interp *interpreter.Interpreter, events loop.Recorder, opts Options) *Reconciler {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Workers == 0 {
		opts.Workers = 8
	}
	if opts.Parallel == 0 {
		opts.Parallel = 16
	}
	if opts.Answers == nil {
		opts.Answers = func(string, time.Time) (time.Time, bool, time.Duration) { return time.Time{}, true, 0 }
	}
	if opts.HasWork == nil {
		opts.HasWork = func(context.Context, string, *workv1alpha1.Work) (bool, error) { return false, nil }
	}
	if opts.PlacementUnchanged == nil {
		opts.PlacementUnchanged = func(context.Context, *unstructured.Unstructured, workv1alpha2.Binding) bool { return false }
	}
	if opts.Undecided == nil {
		opts.Undecided = func(context.Context, *unstructured.Unstructured, workv1alpha2.Binding) bool { return false }
	}
	switches := opts.Switches
	if switches == nil {
		switches = revisiongate.New(hub, templates)
	}
	r := &Reconciler{templates: templates, events: events, opts: opts, switches: switches, counts: newCounts(opts.Metrics, opts.Clock)}
	r.gate = newRevisionGate(switches, opts, func(req ctrl.Request) { r.inbox.Add(req, false) })
	r.works = &workLister{hub: hub, written: writecache.New[*workv1alpha1.Work](opts.Clock)}
	r.reader = reader{hub: hub, gone: r.gate.forget, live: live, templates: templates.Get, works: r.works.of, orphans: r.works.left, unchanged: opts.PlacementUnchanged}
	own := writecache.New[workv1alpha2.Binding](opts.Clock)
	r.freshness = heard.NewFreshness(opts.Clock, opts.StaleFor)
	r.writer = writer{hub: hub, claims: releaser{hub: hub, live: live, released: r.works.released, written: r.works.written, clock: opts.Clock}, recalls: undelete.Recaller{Hub: hub, Cluster: r.works.cluster, Leaving: r.works.leaving, Written: r.works.written, Clock: opts.Clock}, events: events, find: r.works.find, cluster: r.works.cluster, written: r.works.written, own: own, freshness: r.freshness, there: heard.NewPresence(opts.Clock, opts.Answers), asks: opts.HasWork, evictions: opts.Evictions, succeed: workrename.New(hub, r.works.written).Take, ends: opts.Ends, clock: opts.Clock, parallel: opts.Parallel}
	r.renderer = renderer{cluster: r.works.cluster, overrides: r.gate.overrides, interpreter: interp, quotas: r.quotasOf}
	r.itself = bindingWriter{hub: hub, own: own}
	return r
}

// state is what the phases pass on.
type state struct {
	key client.ObjectKey
	// binding is nil if there is none.
	binding workv1alpha2.Binding
	// works are the Works that carry the binding's permanent ID, or, if there is no
	// binding, its name.
	works []*workv1alpha1.Work
	// serving reports whether what the binding carries is needed in a cluster that it leaves; nil if it never is.
	serving func(cluster string) bool
	// template is what the binding propagates.
	template *unstructured.Unstructured
	// held reports whether the template must not be rendered as it is; see plan.Held.
	held bool
	// plans are what each cluster should hold.
	plans []plan.WorkPlan
	// grow are the clusters that get more replicas once others are left.
	grow []string
	// stand counts the plans whose Work exists.
	stand int
	// ready are the clusters whose copy is as planned, applied and healthy.
	ready map[string]bool
	// failed are the errors, each with its cluster.
	failed []fault
	// awaits is the pause before checking again for a manifest that is not known yet; zero if
	// all are.
	awaits time.Duration
	// complete is true once all clusters were handled, and the pass waits for nothing.
	complete bool
}

// Reconcile brings the Works of one binding up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s := state{key: req.NamespacedName}
	end := r.counts.Begin()
	next, err := loop.Run(ctx, &s, r.reader.readBinding, r.itself.useLastWrite, r.writer.finalize, r.reader.readTemplate, r.writer.claims.retain,
		r.gate.ignoreStalePrune, r.writer.pruneClusters, r.suspendDispatching, r.gate.awaitRevision, formerOf(r.writer), r.renderer.render, r.writer.dispatch, r.itself.recordFaults, r.writer.endEvictions, r.writer.deleteStaleWorks)
	end("", s.failure(err))
	r.reportFailures(&s, err)
	return s.result(next, err)
}

// result returns when to reconcile again: when the first of the clusters that wait for
// something needs it. An error in one cluster that needs a person, or that waits
// longer, does not delay others.
func (s *state) result(next loop.Next, err error) (ctrl.Result, error) {
	out, err := loop.Result(next, err)
	if err != nil {
		return out, err
	}
	sooner := func(after time.Duration) {
		if after > 0 && (out.RequeueAfter == 0 || after < out.RequeueAfter) {
			out.RequeueAfter = after
		}
	}
	sooner(s.awaits)
	for _, f := range s.failed {
		if e := loop.As(f.err, ""); e.Class == loop.ClassWaiting {
			sooner(e.After)
		}
	}
	return out, nil
}
