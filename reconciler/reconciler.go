package reconciler

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/interpreters"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/internal/setback"
	"github.com/flotilla-io/flotilla/internal/tenure"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/agents"
	"github.com/flotilla-io/flotilla/reconciler/apply"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/binding"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/cluster"
	"github.com/flotilla-io/flotilla/reconciler/commitstatus"
	"github.com/flotilla-io/flotilla/reconciler/commitstatus/poster"
	"github.com/flotilla-io/flotilla/reconciler/decider"
	"github.com/flotilla-io/flotilla/reconciler/dependency"
	"github.com/flotilla-io/flotilla/reconciler/descheduler"
	"github.com/flotilla-io/flotilla/reconciler/execution"
	"github.com/flotilla-io/flotilla/reconciler/execution/confirmation"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/massfailure"
	"github.com/flotilla-io/flotilla/reconciler/namespace"
	"github.com/flotilla-io/flotilla/reconciler/orphans"
	"github.com/flotilla-io/flotilla/reconciler/rebalance"
	"github.com/flotilla-io/flotilla/reconciler/remedy"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
	"github.com/flotilla-io/flotilla/reconciler/scheduler"
	"github.com/flotilla-io/flotilla/reconciler/secrets/inherited"
	"github.com/flotilla-io/flotilla/reconciler/status"
	"github.com/flotilla-io/flotilla/reconciler/taintpolicy"
	"github.com/flotilla-io/flotilla/reconciler/template"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
	"github.com/flotilla-io/flotilla/reconciler/unifiedauth"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/build"
	"github.com/flotilla-io/flotilla/sources/clouds"
	"github.com/flotilla-io/flotilla/sources/keyservice"
	"github.com/flotilla-io/flotilla/sources/receiver"
)

// Options choose and tune the loops.
type Options struct {
	// Controllers are the loops to run: names, "*" for all, and "-name" for all
	// but that one. Empty means all.
	Controllers []string
	// Artifacts keeps what sources fetch.
	Artifacts *artifact.Store
	// Skip says what is never propagated, beyond what can never be; nil means
	// propagation.DefaultSkipRules.
	Skip *propagation.SkipRules
	// Claims is called with the policy that carries an object, if not nil.
	Claims *Claims
	// Revisions says how revisions are applied, and reported.
	Revisions Revisions
	// Network says whom the loops reach, and where they are reached.
	Network Network
	// Scheduling says how bindings are placed.
	Scheduling Scheduling
	// Silence says when it counts that nothing is heard of a cluster.
	Silence cluster.Silence
	// Tuning says how often members are looked at, and how much is done side by side.
	Tuning Tuning
	// Reporting selects the successes that are reported as Events.
	Reporting Reporting
	// Tenure ends what is written to members with the lease; nil: there is none.
	Tenure *tenure.Tenure
	// Store is what is known of the hub's store.
	Store Store
	// KarmadactlRegister has the loop of agents approve what karmadactl register asks
	// for; the API server must know of it, too.
	KarmadactlRegister bool
	// Busy is called when something has changed in a member, before anybody acts on it; it
	// must not wait. Nil: nobody asks.
	Busy func()
	// Builds runs what is large or must not be done in this process; nil does all of
	// it here, one after the other.
	Builds build.Runner
	// Metrics is where the loops count; nil counts for nobody. What controller-runtime
	// counts of their queues is in its own registry.
	Metrics prometheus.Registerer
}

// Network says whom the loops reach, beside the hub and members, and where they are reached.
type Network struct {
	// Egress connects to Git servers and forges. Its zero value reaches public
	// addresses only.
	Egress egress.Dialer
	// Webhooks is the address that Receivers are reached at; empty for none.
	Webhooks string
}

// Revisions says how revisions of sources are applied, and reported. The zero value of a field stands for
// its default.
type Revisions struct {
	// Tenancy says who acts for Kustomizations, and what they may refer to.
	Tenancy tenancy.Rules
	// Brake says how much one revision may delete; inventory.DefaultBrake if nil.
	Brake *inventory.Brake
	// StrictVariables refuses a variable that has neither value nor default.
	StrictVariables bool
	// StatusURL is where commit statuses link to, with the Kustomization's namespace and name
	// appended; empty links nowhere.
	StatusURL string
}

// Store is what is known of the store of the hub that loops act on.
type Store struct {
	// Opened is its revision before this process wrote anything there; 0 where that is not
	// known, or others write, too.
	Opened int64
	// Place is where it is: a copy of it elsewhere waits until this one does not act any
	// more. Empty where that is not known.
	Place string
}

// defaultPeriod is how often members are probed unless an option says otherwise.
const defaultPeriod = 10 * time.Second

// fleet is what the loops share.
type fleet struct {
	mgr         ctrl.Manager
	opts        Options
	templates   *templatestore.Store
	decider     *decider.Decider
	knowledge   *interpreters.Interpreters
	interpreter *interpreter.Interpreter // what knowledge keeps up to date
	registry    *members.Registry
	setback     *setback.Keeper
	places      *places.Places // what tenants do at the same time
	chosen      map[string]bool
	switches    *revisiongate.Tracker
	template    *template.Reconciler // nil if it is not chosen
	cluster     *cluster.Reconciler  // nil if it is not chosen, or not made yet
	capacity    capacity
	messages
}

// loop is one entry of the list.
type loop struct {
	name     string
	register func(ctx context.Context, f *fleet) error
}

// loops are all there are, in the order in which a change meets them.
var loops = []loop{
	{"gitrepository", registerRepository},
	{"ocirepository", registerOCIRepository},
	{"bucket", registerBucket},
	{"externalartifact", registerExternalArtifact},
	{"receiver", registerReceiver},
	{"kustomization", registerApply},
	{"template", registerTemplate},
	{"scheduler", registerScheduler},
	{"rebalance", registerRebalance},
	{Descheduler, registerDescheduler},
	{"dependency", registerDependency},
	{"binding", registerBinding},
	{"namespace", registerNamespace},
	{"execution", registerExecution},
	{"status", registerStatus},
	{"cluster", registerCluster},
	{"taintpolicy", registerTaintPolicy},
	{"remedy", registerRemedy},
	{"massfailure", registerMassFailure},
	{"orphans", registerOrphans},
	{"agentcsrapproving", registerAgents},
	{"unifiedauth", registerUnifiedAuth},
	{"quota", registerQuota},
	{"quotashare", registerQuotaShare},
	{"commitstatus", registerCommitStatus},
	{"pullrequestreview", registerReview},
	{alertingLoop, registerAlerting},
}

// Register adds the chosen loops to the manager. It errs on a name that is none.
func Register(ctx context.Context, mgr ctrl.Manager, opts Options) error {
	if opts.Skip == nil {
		opts.Skip = ptr.To(propagation.DefaultSkipRules())
	}
	chosen, err := choose(opts.Controllers)
	if err != nil {
		return err
	}
	f, err := newFleet(ctx, mgr, opts, chosen)
	if err != nil {
		return err
	}
	f.listen()
	for _, l := range loops {
		if !chosen[l.name] {
			continue
		}
		if err := l.register(ctx, f); err != nil {
			return fmt.Errorf("set up the loop %s: %w", l.name, err)
		}
	}
	// What the loops read from starts last: they have registered by then what they want.
	if err := f.knowledge.Register(ctx, mgr); err != nil {
		return err
	}
	if err := f.switches.Register(ctx, mgr.GetCache(), chosen["kustomization"]); err != nil {
		return err
	}
	return f.templates.Register(mgr)
}

func newFleet(ctx context.Context, mgr ctrl.Manager, opts Options, chosen map[string]bool) (*fleet, error) {
	decisions, err := opts.Scheduling.decisions()
	if err != nil {
		return nil, err
	}
	decisions.Mapper, decisions.Metrics = mgr.GetRESTMapper(), opts.Metrics
	period := cmp.Or(opts.Tuning.Period, defaultPeriod)
	decisions.StartupGrace = cmp.Or(opts.Silence.Grace, cluster.DefaultGrace) + period
	// Of two that are lost at once, one refuses a probe at that moment and the other is asked a period later, and takes as
	// long as it may to fail for the first time and for the last.
	decisions.Placement.Failover.Breaker.Skew = cmp.Or(decisions.Placement.Failover.Breaker.Skew, period+2*cluster.DefaultProbeTimeout)
	f := &fleet{
		mgr:       mgr,
		opts:      opts,
		chosen:    chosen,
		places:    places.New(places.Options{}),
		messages:  messages{inherited: inherited.New()},
		knowledge: interpreters.New(interpreters.Options{Metrics: opts.Metrics}),
	}
	if decisions.Estimators, err = f.estimators(mgr); err != nil {
		return nil, err
	}
	f.decider = decider.New(mgr.GetClient(), decisions)
	if f.events, err = opts.Reporting.recorder(mgr, opts.Metrics); err != nil {
		return nil, err
	}
	f.events = f.inherited.Recorder(f.events)
	f.interpreter = f.knowledge.Interpreter()
	reach := members.Options{Interpreter: f.interpreter}
	if opts.Tenure != nil {
		reach.Gate = opts.Tenure
	}
	f.registry = members.New(reach)
	f.registry.Count(opts.Metrics)
	if opts.Busy != nil {
		f.registry.Handle(memberEvents{opts.Busy})
	}
	f.setback = setback.New(mgr.GetClient(), mgr.GetAPIReader(), nil)
	f.setback.Opened(opts.Store.Opened)
	setback.Count(opts.Metrics, f.setback.Hold)
	if err := f.setback.Register(mgr, chosen["cluster"]); err != nil {
		return nil, err
	}
	f.templates, err = templatestore.New(mgr.GetConfig(), templatestore.Options{
		HTTPClient: mgr.GetHTTPClient(),
		Scheme:     mgr.GetScheme(),
		Mapper:     mgr.GetRESTMapper(),
		Claims:     template.Claims,
		Log:        mgr.GetLogger(),
	})
	if err != nil {
		return nil, err
	}
	f.switches = revisiongate.New(mgr.GetClient(), f.templates)
	if err := bindings.Register(ctx, mgr); err != nil {
		return nil, err
	}
	if err := f.decider.Register(ctx, mgr); err != nil {
		return nil, err
	}
	return f, mgr.Add(f.registry)
}

func registerReceiver(_ context.Context, f *fleet) error {
	return receiver.New(f.inherited.Client(f.mgr.GetClient()), receiver.Options{
		Address: f.opts.Network.Webhooks, Egress: f.opts.Network.Egress, AllowCrossNamespace: f.opts.Revisions.Tenancy.AllowCrossNamespace, Metrics: f.opts.Metrics, Clean: f.inherited.Clean,
	}).Register(f.mgr)
}

func registerApply(ctx context.Context, f *fleet) error {
	r, err := apply.New(apply.Deps{
		Hub:    f.mgr.GetClient(),
		Live:   f.mgr.GetAPIReader(),
		Config: f.mgr.GetConfig(),
		Builder: builder.New(f.opts.Artifacts, build.NewApart(build.Limits{}, builder.Outside(f.opts.Builds)), builder.Options{
			StrictVariables: f.opts.Revisions.StrictVariables, Services: keyservice.New(keyservice.Options{Egress: f.opts.Network.Egress, Clouds: clouds.Built}).For,
		}),
		Assessor:  f.health(),
		Egress:    f.opts.Network.Egress,
		Events:    f.events,
		Templates: f.templates,
		Switches:  f.switches,
	}, apply.Options{Brake: f.opts.Revisions.Brake, Tenancy: f.opts.Revisions.Tenancy, Places: f.places, Secrets: f.inherited, Metrics: f.opts.Metrics})
	if err != nil {
		return err
	}
	return r.Register(ctx, f.mgr)
}

// bindingDebounce is about as long as Works take to reach their clusters.
const bindingDebounce = 50 * time.Millisecond

func registerTemplate(ctx context.Context, f *fleet) error {
	off := f.opts.Scheduling.Off
	opts := template.Options{Switches: f.switches, Skip: *f.opts.Skip, NoPreemption: off.Preemption, NoPriority: off.Priority, NoComponents: off.Components, Workers: f.opts.Tuning.Workers.Templates, Metrics: f.opts.Metrics}
	if f.chosen["binding"] {
		opts.Debounce = bindingDebounce
	}
	f.template = template.New(f.mgr.GetClient(), f.templates, f.decider, f.interpreter, f.events, opts)
	f.knowledge.OnChange(f.template.Reinterpret)
	if f.opts.Claims != nil {
		if err := f.mgr.Add(f.opts.Claims.during(f.template)); err != nil {
			return err
		}
	}
	return f.template.Register(ctx, f.mgr)
}

func registerScheduler(ctx context.Context, f *fleet) error {
	r := scheduler.New(f.mgr.GetClient(), f.decider, f.events, scheduler.Options{
		NoPriority:    f.opts.Scheduling.Off.Priority,
		DateEachTrial: f.opts.Reporting == ReportKarmada,
		EvictionRate:  f.opts.Scheduling.Failover.Rate,
		Judging:       f.opts.Scheduling.Failover.Judging,
	})
	r.Count(ctx, f.opts.Metrics)
	return r.Register(f.mgr)
}

func registerTaintPolicy(_ context.Context, f *fleet) error {
	return taintpolicy.New(f.mgr.GetClient(), f.events, taintpolicy.Options{Lost: f.opts.Scheduling.Failover.Lost}).Register(f.mgr)
}

func registerMassFailure(_ context.Context, f *fleet) error {
	if !f.opts.Scheduling.Failover.Taints {
		return nil // nothing is moved anyway
	}
	return massfailure.New(f.mgr.GetClient(), f.events, massfailure.Options{Breaker: f.opts.Scheduling.Failover.Breaker}).Register(f.mgr)
}

func registerRemedy(_ context.Context, f *fleet) error {
	return remedy.New(f.mgr.GetClient()).Register(f.mgr)
}

func registerRebalance(_ context.Context, f *fleet) error {
	return rebalance.New(f.mgr.GetClient(), rebalance.Options{}).Register(f.mgr)
}

func registerDescheduler(_ context.Context, f *fleet) error {
	of := f.opts.Scheduling.Descheduling
	f.capacity.descheduler = descheduler.New(f.mgr.GetClient(), f.decider, f.capacity.waiters, f.events, descheduler.Options{
		Interval: of.Interval, Threshold: of.Threshold, DryRun: of.DryRun, Scheduler: f.opts.Scheduling.Name,
	})
	return f.capacity.descheduler.Register(f.mgr)
}

func registerDependency(ctx context.Context, f *fleet) error {
	opts := dependency.Options{Skip: *f.opts.Skip, Off: f.opts.Scheduling.Off.Dependencies, Workers: f.opts.Tuning.Workers.Dependents}
	if f.template != nil {
		opts.Carried = f.template.Carries
	}
	r := dependency.New(f.mgr.GetClient(), f.mgr.GetAPIReader(), f.templates, f.interpreter, f.events, opts)
	f.knowledge.OnChange(r.Reinterpret)
	return r.Register(ctx, f.mgr)
}

func registerBinding(ctx context.Context, f *fleet) error {
	opts := binding.Options{
		Switches: f.switches,

		Workers:  f.opts.Tuning.Workers.Bindings,
		Metrics:  f.opts.Metrics,
		StaleFor: cmp.Or(f.opts.Silence.Grace, cluster.DefaultGrace) + cmp.Or(f.opts.Tuning.Period, defaultPeriod),

		IgnoreQuotas: f.opts.Scheduling.Off.Quotas,
		Evictions:    binding.Evictions{Grace: f.opts.Scheduling.Failover.Grace, Scheduler: f.opts.Scheduling.Name},
	}
	if f.template != nil {
		opts.PlacementUnchanged, opts.Undecided = f.template.PlacementUnchanged, f.template.Undecided
	}
	if f.chosen["cluster"] {
		opts.Answers = f.answers
	}
	opts.HasWork = f.registry.HasWork
	if f.chosen["execution"] {
		opts.Ends = f.ends
	}
	r := binding.New(f.mgr.GetClient(), f.mgr.GetAPIReader(), f.templates, f.interpreter, f.events, opts)
	f.knowledge.OnChange(r.Reinterpret)
	return r.Register(ctx, f.mgr)
}

// answers asks whether a cluster answers; the loop of clusters has to be among the chosen ones.
func (f *fleet) answers(name string, asked time.Time) (since time.Time, yes bool, again time.Duration) {
	return f.cluster.Presence.Answers(name, asked)
}

// ends reports whether the execution loop ends a cluster's Works as it sees their binding go.
func (f *fleet) ends(c *clusterv1alpha1.Cluster) bool {
	_, connected := f.registry.Get(c.Name)
	return connected && c.Spec.SyncMode == clusterv1alpha1.Push && c.DeletionTimestamp.IsZero() &&
		meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
}

func registerNamespace(ctx context.Context, f *fleet) error {
	return namespace.New(f.mgr.GetClient(), namespace.Options{Switches: f.switches, Skip: f.opts.Skip, Workers: f.opts.Tuning.Workers.Namespaces}).Register(ctx, f.mgr)
}

func registerExecution(_ context.Context, f *fleet) error {
	f.knowledge.OnChange(func(_ context.Context, affects func(schema.GroupVersionKind) bool) { f.registry.Reinterpret(affects) })
	opts := execution.Options{Hold: f.setback.HoldOf, Workers: f.opts.Tuning.Workers.Works, Metrics: f.opts.Metrics}
	if f.chosen["cluster"] {
		opts.Answers = f.answers
	}
	carry := execution.New(f.mgr.GetClient(), f.registry, f.interpreter, f.events, opts)
	f.setback.OnChange(carry.Wake)
	if err := confirmation.New(f.mgr.GetClient(), f.events, confirmation.Options{Answers: opts.Answers, Hold: opts.Hold}).Register(f.mgr); err != nil {
		return err
	}
	return carry.Register(f.mgr)
}

func registerStatus(_ context.Context, f *fleet) error {
	r := status.New(f.mgr.GetClient(), f.templates, f.interpreter, status.Options{SchedulerName: f.opts.Scheduling.Name, Metrics: f.opts.Metrics})
	f.knowledge.OnChange(r.Reinterpret)
	return r.Register(f.mgr)
}

func registerCluster(ctx context.Context, f *fleet) error {
	cluster.Count(ctx, f.opts.Metrics, f.mgr.GetClient())
	f.cluster = cluster.New(f.mgr.GetClient(), f.mgr.GetAPIReader(), f.registry, f.events, cluster.Options{
		Place: f.opts.Store.Place, Marks: f.setback, Hold: f.setback.Hold, OnHold: f.setback.OnChange,
		NoModels: f.opts.Scheduling.Off.Models || f.opts.Tuning.NoModels,
		Silence:  f.opts.Silence,
		Period:   f.opts.Tuning.Period, FailureThreshold: f.opts.Tuning.FailureThreshold, SuccessThreshold: f.opts.Tuning.SuccessThreshold,
		Workers: f.opts.Tuning.Workers.Clusters,
	})
	f.capacity.memberEstimator.cluster = f.cluster
	if !f.opts.Scheduling.Estimates.Reported {
		f.cluster.OnCapacity = func(name string) { f.decider.Unschedulable().MoreCapacity(name) }
	}
	return f.cluster.Register(f.mgr)
}

func registerOrphans(_ context.Context, f *fleet) error {
	r := orphans.New(f.mgr.GetClient(), f.mgr.GetAPIReader(), f.registry, f.events, orphans.Options{Hold: f.setback.HoldOf, Metrics: f.opts.Metrics})
	f.setback.OnChange(r.Wake)
	return r.Register(f.mgr)
}

func registerUnifiedAuth(ctx context.Context, f *fleet) error {
	return unifiedauth.New(f.mgr.GetClient(), f.events, unifiedauth.Options{Skip: f.opts.Skip}).Register(ctx, f.mgr)
}

func registerAgents(_ context.Context, f *fleet) error {
	return agents.New(f.mgr.GetClient(), f.mgr.GetAPIReader(), agents.Options{Events: f.events, KarmadactlRegister: f.opts.KarmadactlRegister}).Register(f.mgr)
}

func registerCommitStatus(_ context.Context, f *fleet) error {
	opts := commitstatus.Options{AllowCrossNamespace: f.opts.Revisions.Tenancy.AllowCrossNamespace, TargetURL: f.opts.Revisions.StatusURL, Secrets: f.inherited}
	if err := commitstatus.New(f.mgr.GetClient(), f.health(), f.events, opts).Register(f.mgr); err != nil {
		return err
	}
	if err := commitstatus.NewSources(f.mgr.GetClient(), f.events, opts).Register(f.mgr); err != nil {
		return err
	}
	return poster.New(f.mgr.GetClient(), f.mgr.GetAPIReader(), poster.Options{Egress: f.opts.Network.Egress, Secrets: f.inherited, Metrics: f.opts.Metrics, Remains: f.health()}).Register(f.mgr)
}

// health judges how objects of the control plane fare in their clusters.
func (f *fleet) health() *health.Reader {
	return health.New(health.Deps{Hub: f.mgr.GetClient(), Live: f.mgr.GetAPIReader(), Templates: f.templates, Skip: *f.opts.Skip, NoPreemption: f.opts.Scheduling.Off.Preemption})
}
