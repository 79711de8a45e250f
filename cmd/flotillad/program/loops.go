package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli/flag"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/cmd/flotillad/features"
	"github.com/flotilla-io/flotilla/cmd/flotillad/karmada"
	"github.com/flotilla-io/flotilla/cmd/flotillad/transitions"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/tenure"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler"
	"github.com/flotilla-io/flotilla/sources/artifact"
)

// loopOptions are the flags of commands that run the loops.
type loopOptions struct {
	// dataDir is the folder for what sources fetch.
	dataDir     string
	sources     sourceOptions
	controllers []string
	leaderElect bool
	addresses   listenOptions
	tenancy     tenancy.Rules
	skip        skipOptions
	scheduling  reconciler.Scheduling
	failover    failoverOptions
	tuning      tuningOptions
	reporting   string
	gates       map[string]bool
	// features is the meaning of gates, set by validate.
	features features.Gates
	plane    inProcess
	// unused logs which flags of Karmada's were set and have no effect.
	unused func() []string
	log    logr.Logger
}

// listenOptions are the addresses for metrics, health and profiles.
type listenOptions struct {
	metrics, health, profiles string
	// profile enables profiles.
	profile bool
}

// profiled returns the address of profiles; empty if they are not served.
func (o listenOptions) profiled() string {
	if !o.profile {
		return ""
	}
	return o.profiles
}

// skipOptions configure which objects are not propagated.
type skipOptions struct {
	namespaces []string
	apis       string
	rules      propagation.SkipRules
}

// inProcess is what a control plane in the same process offers; zero if it runs elsewhere.
type inProcess struct {
	// shared returns an object equal to one that was read from the control plane, sharing
	// memory with this process's cache.
	shared func(ctx context.Context, obj runtime.Object) runtime.Object
	// watch watches a kind without a request to the control plane, or returns an error.
	watch hub.WatchFunc
	// opened is the revision of its store before this process wrote anything; 0 means not
	// known.
	opened int64
	// place identifies its store; empty means not known.
	place string
	// busy is called when there is work to do; it may be nil.
	busy func()
	// karmadactl is true if karmadactl register and Karmada's agent are supported.
	karmadactl bool
	// claims is called with the policy that carries an object, if not nil.
	claims *reconciler.Claims
	// diskFull returns why nothing more should be stored on the disk; nil if more may be.
	diskFull func() error
	// screen is called with lines for who looks at the terminal; nil if there is none.
	screen func(at time.Time, line string)
}

// take applies what a program adds.
func (o *loopOptions) take(own Options) {
	o.scheduling.Plugins, o.tuning.estimates.plugins, o.sources.builds = own.Plugins, own.Room, own.builds()
}

func (o *loopOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.controllers, "controllers", []string{"*"},
		"which loops to run: names, * for all but descheduler, -name for all but that one; there are "+strings.Join(reconciler.Names(), ", "))
	o.sources.addFlags(flags)
	flags.BoolVar(&o.tenancy.AllowCrossNamespace, "allow-cross-namespace-references", false,
		"let a Kustomization use a source of another namespace")
	flags.StringVar(&o.tenancy.DefaultServiceAccount, "default-service-account", tenancy.DefaultAccount,
		"the service account that acts for Kustomizations without spec.serviceAccountName, in their own namespace")
	flags.StringSliceVar(&o.tenancy.PrivilegedNamespaces, "privileged-source-namespaces", []string{"flux-system"},
		"namespaces whose Kustomizations need no service account and may do everything: whoever may write Kustomizations or sources there is an administrator of the fleet")
	flags.StringSliceVar(&o.skip.namespaces, "skipped-propagating-namespaces", []string{propagation.DefaultSkippedNamespaces},
		"namespaces that stay on the control plane, with all that is in them: regular expressions of whole names")
	flags.StringVar(&o.skip.apis, "skipped-propagating-apis", "",
		"kinds that stay on the control plane, separated by semicolons: group, group/version or group/version/Kind,Kind")
	flags.StringVar(&o.scheduling.Name, "scheduler-name", policyv1alpha1.DefaultSchedulerName,
		"the scheduler that the loops are: policies that name another one are placed by that one")
	flags.StringSliceVar(&o.scheduling.Enabled, "plugins", []string{"*"},
		"which plugins choose clusters: names, * for all, -name for all but that one; there are "+strings.Join(o.scheduling.PluginNames(), ", "))
	flags.BoolVar(&o.scheduling.KeepEmpty, "enable-empty-workload-propagation", false,
		"carry a workload to clusters that were chosen for it and get no replicas, too")
	o.failover.addFlags(flags)
	o.tuning.addFlags(flags)
	flags.StringVar(&o.reporting, "reporting", string(reconciler.ReportChanges),
		"how much is told of what succeeds: changes tells of what begins and of what fails; karmada writes each Event that Karmada's controllers do, and dates each try to place a binding")
	flags.Var(flag.NewMapStringBool(&o.gates), "feature-gates",
		"what to switch on or off, as name=true or name=false; there are "+strings.Join(features.Names(), ", ")+", and in serve those of Kubernetes")
	flags.StringVar(&o.addresses.metrics, "metrics-bind-address", o.addresses.metrics, "where the loops serve /metrics; 0 or nothing turns it off")
	flags.StringVar(&o.addresses.health, "health-probe-bind-address", o.addresses.health, "where the loops serve /healthz and /readyz; 0 or nothing turns it off")
	flags.BoolVar(&o.addresses.profile, "enable-pprof", false, "serve profiles of this process to everybody who reaches --profiling-bind-address")
	flags.StringVar(&o.addresses.profiles, "profiling-bind-address", "127.0.0.1:6060", "where --enable-pprof serves profiles")
	o.unused = karmada.Add(flags)
}

// validate returns an error for flags that are wrong, before anything starts. kubernetes
// reports which feature gates are Kubernetes' own; nil means none.
func (o *loopOptions) validate(kubernetes func(gate string) bool) (err error) {
	if err := reconciler.Check(o.controllers); err != nil {
		return command.Usage(fmt.Errorf("--controllers: %w", err))
	}
	if err := o.sources.validate(); err != nil {
		return err
	}
	if o.skip.rules, err = propagation.NewSkipRules(o.skip.namespaces, o.skip.apis); err != nil {
		return command.Usage(err)
	}
	if err := o.tenancy.Check(); err != nil {
		return command.Usage(err)
	}
	if err := o.scheduling.Check(); err != nil {
		return command.Usage(fmt.Errorf("--plugins: %w", err))
	}
	if o.features, err = features.Read(o.gates, kubernetes); err != nil {
		return command.Usage(fmt.Errorf("--feature-gates: %w", err))
	}
	if err := o.tuning.validate(); err != nil {
		return err
	}
	if err := o.failover.validate(o.gates); err != nil {
		return err
	}
	if o.scheduling.Estimates, err = o.tuning.estimates.estimates(); err != nil {
		return err
	}
	o.scheduling.Descheduling = o.tuning.estimates.descheduling
	o.scheduling.Estimates.Remote = o.tuning.estimates.remote.connect()
	if err := reconciler.Reporting(o.reporting).Check(); err != nil {
		return command.Usage(fmt.Errorf("--reporting %w", err))
	}
	o.scheduling.Failover = o.failover.rules(o.features)
	o.scheduling.Off = reconciler.Off{
		Preemption:       !o.features.Preemption,
		Priority:         !o.features.PriorityScheduling,
		WorkloadAffinity: !o.features.WorkloadAffinity,
		Components:       !o.features.MultiplePodTemplates,
		Models:           !o.features.ResourceModeling,
		Quotas:           !o.features.QuotaEnforcement,
		Reservations:     !o.features.OvercommitProtection,
		Dependencies:     !o.features.PropagateDeps,
		MemberQuotas:     !o.features.QuotaEstimate,
	}
	return nil
}

// revisions returns how revisions are applied, and by whom.
func (o *loopOptions) revisions() reconciler.Revisions {
	out := o.sources.revisions
	out.Tenancy = o.tenancy
	out.Tenancy.Limits = o.sources.limits
	return out
}

// withoutEffect returns everything that was set and has no effect, each with the reason.
func (o *loopOptions) withoutEffect() []string {
	out := append(o.failover.withoutEffect(o.features), o.unused()...)
	for _, g := range o.features.Idle {
		out = append(out, fmt.Sprintf("--feature-gates=%s=%t (%s)", g.Name, !g.Default, g.Here))
	}
	for _, c := range reconciler.Absent(o.controllers) {
		out = append(out, fmt.Sprintf("--controllers=%s (not built yet: %s)", c.Name, c.Missing))
	}
	return out
}

// warn prints, in one line, what was set and has no effect.
func (o *loopOptions) warn(out io.Writer) {
	if set := o.withoutEffect(); len(set) > 0 {
		_, _ = fmt.Fprintf(out, "warning: without effect here: %s; flotillad flags lists what is\n", strings.Join(set, ", "))
	}
}

// run runs the loops against the hub until ctx ends. Loops that lose their lease are created
// again, and wait for it.
func (o *loopOptions) run(ctx context.Context, cfg *rest.Config) (err error) {
	defer func() { err = command.Taken(err, o.listening()) }()
	ctx = logr.NewContext(ctx, o.log)
	listener, err := o.listen(ctx)
	if err != nil {
		return fmt.Errorf("listen for artifacts: %w", err)
	}
	store, stop, err := o.serveArtifacts(listener)
	if err != nil {
		return err
	}
	defer stop()
	for {
		err := o.runOnce(ctx, cfg, store, listener.Addr().String())
		if !errors.Is(err, hub.ErrLost) {
			return err
		}
		o.log.Info("the loops have stopped, and wait for the lease again", "why", err.Error())
		if err := hub.Await(ctx, cfg); err != nil {
			return nil // ctx ended
		}
	}
}

// listening returns the addresses at which the loops serve, by the names of their flags.
func (o *loopOptions) listening() map[string]string {
	return map[string]string{
		"metrics-bind-address": o.addresses.metrics, "health-probe-bind-address": o.addresses.health,
		"profiling-bind-address": o.addresses.profiled(), "artifact-address": o.sources.artifactAddress, "receiver-address": o.sources.receiverAddress,
	}
}

// runOnce runs the loops until ctx ends or the lease is lost. artifacts is the address at
// which the store's artifacts are served.
func (o *loopOptions) runOnce(ctx context.Context, cfg *rest.Config, store *artifact.Store, artifacts string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	options := hub.Options{
		Log:             o.log,
		MetricsAddress:  o.addresses.metrics,
		HealthAddress:   o.addresses.health,
		ProfilesAddress: o.addresses.profiled(),
		Watch:           o.plane.watch,
	}
	if o.leaderElect {
		options.Tenure = tenure.New(clock.RealClock{})
	}
	if o.plane.shared != nil {
		options.Shared = func(obj runtime.Object) runtime.Object { return o.plane.shared(ctx, obj) }
	}
	mgr, err := hub.NewManager(cfg, scheme.New(), options)
	if err != nil {
		return err
	}
	err = reconciler.Register(ctx, mgr, reconciler.Options{
		Controllers: withDescheduler(o.controllers, o.failover.on()),
		Artifacts:   store,
		Skip:        &o.skip.rules,
		Claims:      o.plane.claims,
		Revisions:   o.revisions(),
		Network: reconciler.Network{
			Egress:   o.sources.dialer(options.Tenure, artifacts, cfg.Host, o.addresses.metrics, o.addresses.health, o.addresses.profiles, o.sources.receiverAddress),
			Webhooks: o.sources.receiverAddress,
		},
		Scheduling: o.scheduling,
		Silence:    o.tuning.silence,
		Tuning:     o.tuning.loops,
		Reporting:  reconciler.Reporting(o.reporting),
		Tenure:     options.Tenure,
		Busy:       o.plane.busy,
		Builds:     o.sources.builds,
		Store:      reconciler.Store{Opened: o.plane.opened, Place: o.plane.place},
		Metrics:    metrics.Registry,

		KarmadactlRegister: o.plane.karmadactl,
	})
	if err != nil {
		return err
	}
	if err := checkHealth(mgr); err != nil {
		return err
	}
	if err := transitions.Register(mgr, transitions.Options{Log: o.log, Screen: o.plane.screen}); err != nil {
		return err
	}
	if err := hub.Start(ctx, mgr, options.Tenure); err != nil {
		return fmt.Errorf("run the loops: %w", err)
	}
	return nil
}
