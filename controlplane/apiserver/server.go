package apiserver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/notfoundhandler"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/controlplane/fence"
)

const (
	// pollEvery is how often WaitServing looks.
	pollEvery = 20 * time.Millisecond
	// farewell is how long watches that are open when the server stops may take
	// to end by themselves. They hardly ever do, and their clients come back.
	farewell = 2 * time.Second
)

// Server is a chain that is built and listens, but answers only while Run runs.
type Server struct {
	chain    *aggregatorapiserver.APIAggregator
	excluded []string // ready checks that WaitServing ignores
	address  net.Addr
	url      string
}

// New builds the chain and opens its port. The store must answer.
func New(ctx context.Context, opts Options) (*Server, error) {
	s, err := build(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("api server: %w", err)
	}
	return s, nil
}

func build(ctx context.Context, opts Options) (*Server, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if err := setFeatureGates(opts.FeatureGates); err != nil {
		return nil, err
	}
	run, err := opts.complete()
	if err != nil {
		return nil, err
	}
	s, err := chain(ctx, run, opts)
	if err != nil {
		run.SecureServing.Listener.Close()
		return nil, err
	}
	return s, nil
}

func chain(ctx context.Context, run *options.ServerRunOptions, opts Options) (*Server, error) {
	completed, err := run.Complete(ctx)
	if err != nil {
		return nil, err
	}
	if errs := completed.Validate(); len(errs) != 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	config, err := app.NewConfig(completed)
	if err != nil {
		return nil, err
	}
	adjust(config, opts.ReadyChecks)
	if opts.Requests.Notice != nil {
		report(config.Aggregator.GenericConfig, opts.Requests.Notice)
	}
	if opts.Requests.Busy != nil {
		herald(config.Aggregator.GenericConfig, opts.Requests.Busy)
	}
	if opts.Extension != nil && opts.Extension.Around != nil {
		surround(config.Aggregator.GenericConfig, opts.Extension.Around)
	}
	if opts.Requests.Up != nil {
		awaitStart(config.Aggregator.GenericConfig, opts.Requests.Up)
	}
	if opts.ExpiredAgents > 0 {
		if err := authenticateAgents(config, opts.ExpiredAgents, clock.RealClock{}); err != nil {
			return nil, err
		}
	}
	aggregator, err := connect(config, opts.Extension, opts.Admission)
	if err != nil {
		return nil, err
	}
	aggregator.GenericAPIServer.ShutdownTimeout = farewell
	for path, page := range opts.Pages {
		aggregator.GenericAPIServer.Handler.NonGoRestfulMux.Handle(path, page)
	}
	s := &Server{chain: aggregator, address: run.SecureServing.Listener.Addr()}
	s.url = "https://" + net.JoinHostPort(opts.advertised().String(), strconv.Itoa(run.SecureServing.BindPort))
	for _, check := range opts.ReadyChecks {
		s.excluded = append(s.excluded, check.Name())
	}
	return s, nil
}

// adjust sets what upstream's options cannot.
func adjust(config *app.Config, ready []healthz.HealthChecker) {
	for _, generic := range []*genericapiserver.Config{
		config.KubeAPIs.ControlPlane.Generic, &config.ApiExtensions.GenericConfig.Config, &config.Aggregator.GenericConfig.Config,
	} {
		generic.EffectiveVersion = knownVersion{generic.EffectiveVersion}
	}
	aggregator := config.Aggregator.GenericConfig
	aggregator.ReadyzChecks = append(aggregator.ReadyzChecks, ready...)
	chain := aggregator.BuildHandlerChainFunc
	aggregator.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return fence.Carry(chain(handler, c))
	}
}

// connect chains the servers: what the first does not serve goes to the next. Plugins receive
// what custom resources there are.
func connect(config *app.Config, extension *Extension, plugins []Plugin) (*aggregatorapiserver.APIAggregator, error) {
	completed, err := config.Complete()
	if err != nil {
		return nil, err
	}
	notFound := notfoundhandler.New(completed.KubeAPIs.ControlPlane.Generic.Serializer, genericapifilters.NoMuxAndDiscoveryIncompleteKey)
	crds, err := completed.ApiExtensions.New(genericapiserver.NewEmptyDelegateWithCustomHandler(notFound))
	if err != nil {
		return nil, fmt.Errorf("custom resources: %w", err)
	}
	defined := crds.Informers.Apiextensions().V1().CustomResourceDefinitions()
	for _, p := range plugins {
		if wants, ok := p.Interface.(WantsDefinitions); ok {
			wants.SetDefinitions(defined.Lister())
		}
	}
	var next genericapiserver.DelegationTarget = crds.GenericAPIServer
	if extension != nil {
		if next, err = extension.newServer(config, next); err != nil {
			return nil, fmt.Errorf("extension %s: %w", extension.Name, err)
		}
	}
	kube, err := completed.KubeAPIs.New(next)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	aggregator, err := controlplaneapiserver.CreateAggregatorServer(completed.Aggregator, kube.ControlPlane.GenericAPIServer,
		defined, true, priorities(extension))
	if err != nil {
		return nil, fmt.Errorf("aggregator: %w", err)
	}
	return aggregator, nil
}

func setFeatureGates(asked map[string]bool) error {
	if err := compatibility.DefaultComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	gates := map[string]bool{}
	for _, set := range []map[string]bool{featureGates, asked} {
		for name, enabled := range set {
			gates[name] = enabled
		}
	}
	return utilfeature.DefaultMutableFeatureGate.SetFromMap(gates)
}

// Run serves until ctx ends, then finishes the requests under way. It may be
// called once.
func (s *Server) Run(ctx context.Context) error {
	prepared, err := s.chain.PrepareRun()
	if err != nil {
		return fmt.Errorf("api server: %w", err)
	}
	if err := prepared.Run(ctx); err != nil {
		return fmt.Errorf("api server: %w", err)
	}
	return nil
}

// URL is where clients on this machine find the server.
func (s *Server) URL() string { return s.url }

// Port is the port that the server listens on.
func (s *Server) Port() int { return s.address.(*net.TCPAddr).Port }

// LoopbackConfig is for clients inside this process: they may do everything, are
// never throttled, need no connection, and work for this run of the server
// alone.
func (s *Server) LoopbackConfig() *rest.Config {
	own := s.chain.GenericAPIServer.LoopbackClientConfig
	return &rest.Config{
		Host:        own.Host,
		BearerToken: own.BearerToken,
		Transport:   prompt{next: loopback{s.chain.GenericAPIServer.Handler}, clock: clock.RealClock{}},
		QPS:         -1,
	}
}

// WaitServing returns when the server answers and all its own parts are ready;
// the ReadyChecks of the options are not waited for.
func (s *Server) WaitServing(ctx context.Context) error { return s.wait(ctx, s.excluded) }

// WaitOpen returns when clients inside this process can read and write all that is
// served: the roles that others get their rights by may not be created yet.
func (s *Server) WaitOpen(ctx context.Context) error {
	return s.wait(ctx, append(slices.Clone(s.excluded), unhurried...))
}

// unhurried are the post-start hooks of a server that sleep for a second before they begin, and
// that clients with all rights do not depend on.
var unhurried = []string{"poststarthook/rbac/bootstrap-roles", "poststarthook/scheduling/bootstrap-system-priority-classes"}

func (s *Server) wait(ctx context.Context, excluded []string) error {
	hub, err := kubernetes.NewForConfig(s.LoopbackConfig())
	if err != nil {
		return fmt.Errorf("api server: %w", err)
	}
	return waitReady(ctx, hub.RESTClient(), excluded)
}

// waitReady returns when a server is ready, not counting the excluded checks.
func waitReady(ctx context.Context, hub rest.Interface, excluded []string) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
		// A server without its paths yet answers with Retry-After 5 s.
		request := hub.Get().AbsPath("/readyz").MaxRetries(0)
		for _, name := range excluded {
			request.Param("exclude", name)
		}
		status := 0
		last = request.Do(ctx).StatusCode(&status).Error()
		return status == http.StatusOK, nil
	})
	if err != nil {
		return fmt.Errorf("api server is not ready: %w (last answer: %v)", err, last)
	}
	return nil
}
