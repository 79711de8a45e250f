package program

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli/flag"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/features"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler"
	"github.com/flotilla-io/flotilla/sources/artifact"
)

// loopOptions are the flags of whatever runs the loops.
type loopOptions struct {
	// dataDir keeps what sources fetch.
	dataDir string
	// artifactAddress is where artifacts are served; empty takes the port of
	// the last run, or a free one.
	artifactAddress     string
	controllers         []string
	leaderElect         bool
	addresses           struct{ metrics, health string }
	allowCrossNamespace bool
	skippedNamespaces   []string
	skippedAPIs         string
	skip                propagation.SkipRules
	scheduling          reconciler.Scheduling
	silence             reconciler.Silence
	gates               map[string]bool
	// features are what the gates mean, once they are validated.
	features features.Gates
	// claims is told which policy carries which object; nil if nobody asks.
	claims *reconciler.Claims
	// shared returns what was read from the control plane made of what this process
	// has of it anyway; nil where it runs elsewhere.
	shared func(ctx context.Context, obj runtime.Object) runtime.Object
	log    logr.Logger
}

func (o *loopOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.controllers, "controllers", []string{"*"},
		"which loops to run: names, * for all, -name for all but that one; there are "+strings.Join(reconciler.Names(), ", "))
	flags.StringVar(&o.artifactAddress, "artifact-address", "",
		"IP address and port that artifacts are served on; default is loopback with the port of the last run, or a free one")
	flags.BoolVar(&o.allowCrossNamespace, "allow-cross-namespace-references", false,
		"let a Kustomization use a source of another namespace")
	flags.StringSliceVar(&o.skippedNamespaces, "skipped-propagating-namespaces", []string{"kube-.*"},
		"namespaces that stay on the control plane, with all that is in them: regular expressions of whole names")
	flags.StringVar(&o.skippedAPIs, "skipped-propagating-apis", "",
		"kinds that stay on the control plane, separated by semicolons: group, group/version or group/version/Kind,Kind")
	flags.StringVar(&o.scheduling.Name, "scheduler-name", policyv1alpha1.DefaultSchedulerName,
		"the scheduler that the loops are: policies that name another one are placed by that one")
	flags.StringSliceVar(&o.scheduling.Enabled, "plugins", []string{"*"},
		"which plugins choose clusters: names, * for all, -name for all but that one; there are "+strings.Join(o.scheduling.PluginNames(), ", "))
	flags.BoolVar(&o.scheduling.KeepEmpty, "enable-empty-workload-propagation", false,
		"carry a workload to clusters that were chosen for it and get no replicas, too")
	flags.DurationVar(&o.silence.Grace, "cluster-monitor-grace-period", reconciler.DefaultGrace,
		"how long a cluster in pull mode may be silent before it counts as not known to be ready")
	flags.DurationVar(&o.silence.Startup, "cluster-startup-grace-period", reconciler.DefaultStartup,
		"the same for a cluster that has never been heard of")
	flags.Var(flag.NewMapStringBool(&o.gates), "feature-gates",
		"what to switch on or off, as name=true or name=false; there are "+strings.Join(features.Names(), ", ")+", and in serve those of Kubernetes")
	flags.StringVar(&o.addresses.metrics, "metrics-bind-address", o.addresses.metrics, "where the loops serve /metrics; 0 or nothing turns it off")
	flags.StringVar(&o.addresses.health, "health-probe-bind-address", o.addresses.health, "where the loops serve /healthz and /readyz; 0 or nothing turns it off")
}

// validate refuses what can be seen to be wrong before anything starts.
// Kubernetes says which feature gates are Kubernetes' own; nil where none are.
func (o *loopOptions) validate(kubernetes func(gate string) bool) (err error) {
	if err := reconciler.Check(o.controllers); err != nil {
		return command.Usage(fmt.Errorf("--controllers: %w", err))
	}
	if o.skip, err = propagation.NewSkipRules(o.skippedNamespaces, o.skippedAPIs); err != nil {
		return command.Usage(err)
	}
	if err := o.scheduling.Check(); err != nil {
		return command.Usage(fmt.Errorf("--plugins: %w", err))
	}
	if o.features, err = features.Read(o.gates, kubernetes); err != nil {
		return command.Usage(fmt.Errorf("--feature-gates: %w", err))
	}
	if o.silence.Grace < time.Second || o.silence.Startup < time.Second {
		return command.Usage(errors.New("--cluster-monitor-grace-period and --cluster-startup-grace-period must be at least 1s: agents report every few seconds"))
	}
	o.scheduling.Off = reconciler.Off{
		Preemption:       !o.features.Preemption,
		Priority:         !o.features.PriorityScheduling,
		WorkloadAffinity: !o.features.WorkloadAffinity,
		Components:       !o.features.MultiplePodTemplates,
		Models:           !o.features.ResourceModeling,
		Promises:         !o.features.OvercommitProtection,
		Dependencies:     !o.features.PropagateDeps,
	}
	return nil
}

// run runs the loops against the hub until ctx ends.
func (o *loopOptions) run(ctx context.Context, cfg *rest.Config) error {
	ctx = logr.NewContext(ctx, o.log)
	if len(o.features.Idle) > 0 {
		o.log.Info("feature gates are set for what is not there yet", "gates", o.features.Idle)
	}
	store, stop, err := o.serveArtifacts(ctx)
	if err != nil {
		return err
	}
	defer stop()
	options := hub.Options{
		Log:            o.log,
		LeaderElection: o.leaderElect,
		MetricsAddress: o.addresses.metrics,
		HealthAddress:  o.addresses.health,
	}
	if o.shared != nil {
		options.Shared = func(obj runtime.Object) runtime.Object { return o.shared(ctx, obj) }
	}
	mgr, err := hub.NewManager(cfg, scheme.New(), options)
	if err != nil {
		return err
	}
	err = reconciler.Register(ctx, mgr, reconciler.Options{
		Controllers:         o.controllers,
		Artifacts:           store,
		Skip:                o.skip,
		Claims:              o.claims,
		AllowCrossNamespace: o.allowCrossNamespace,
		Scheduling:          o.scheduling,
		Silence:             o.silence,
	})
	if err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the loops: %w", err)
	}
	return nil
}

// serveArtifacts opens the store and offers it over HTTP, so that other tools
// find the artifacts by the addresses in the sources' status.
func (o *loopOptions) serveArtifacts(ctx context.Context) (*artifact.Store, func(), error) {
	if err := os.MkdirAll(o.dataDir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("make the folder of what sources fetch: %w", err)
	}
	listener, err := o.listen(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("listen for artifacts: %w", err)
	}
	store, err := artifact.NewStore(filepath.Join(o.dataDir, "artifacts"), artifact.Options{BaseURL: "http://" + listener.Addr().String()})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the artifact store: %w", err), listener.Close())
	}
	server := &http.Server{Handler: store.Handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	return store, func() {
		_ = server.Close()
		_ = store.Close()
	}, nil
}

// listen takes the given address. Without one it takes the port of the last
// run, so that the addresses in statuses stay true, and a free one if there was
// none or somebody else has it.
func (o *loopOptions) listen(ctx context.Context) (net.Listener, error) {
	config := &net.ListenConfig{}
	if o.artifactAddress != "" {
		return config.Listen(ctx, "tcp", o.artifactAddress)
	}
	memory := filepath.Join(o.dataDir, "artifact-address")
	last, err := os.ReadFile(memory)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(last) > 0 {
		if listener, err := config.Listen(ctx, "tcp", strings.TrimSpace(string(last))); err == nil {
			return listener, nil
		}
	}
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(memory, []byte(listener.Addr().String()), 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}
