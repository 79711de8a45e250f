package housekeeping

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	serviceaccountcontroller "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/serviceaccount"
	"k8s.io/utils/clock"
)

// mapperPeriod is how often the controllers forget which kinds the server has.
const mapperPeriod = 30 * time.Second

// environment is what the controllers of one instance share.
type environment struct {
	context app.ControllerContext
	clients clientbuilder.ControllerClientBuilder
	config  *config.CompletedConfig
	graph   *watches // what the garbage collector watches through
	whole   bool     // all controllers of a cluster run, not those of a hub
}

// newEnvironment connects the informers. In a whole cluster the garbage collector shares the controllers' objects;
// in a hub, where few controllers run, it keeps nothing of an object but its name and its owners.
func newEnvironment(ctx context.Context, cfg *config.CompletedConfig, whole bool) (*environment, error) {
	clients := clientbuilder.SimpleControllerClientBuilder{ClientConfig: cfg.Kubeconfig}
	client, err := clients.Client("shared-informers")
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(rest.AddUserAgent(cfg.Kubeconfig, "metadata-informers"))
	if err != nil {
		return nil, err
	}
	discovery, err := clients.DiscoveryClient("controller-discovery")
	if err != nil {
		return nil, err
	}
	period := resyncPeriod(cfg.ComponentConfig.Generic.MinResyncPeriod.Duration)
	typed := informers.NewSharedInformerFactoryWithOptions(client, period(), informers.WithTransform(withoutManagedFields))
	graph := newWatches(typed, func() metadatainformer.SharedInformerFactory {
		return metadatainformer.NewSharedInformerFactoryWithOptions(metadataClient, period(), metadatainformer.WithTransform(withoutManagedFields))
	})
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery))
	go wait.UntilWithContext(ctx, func(context.Context) { mapper.Reset() }, mapperPeriod)

	env := &environment{whole: whole, clients: clients, config: cfg, context: app.ControllerContext{
		ClientBuilder:                   clients,
		InformerFactory:                 typed,
		ObjectOrMetadataInformerFactory: graph,
		ComponentConfig:                 cfg.ComponentConfig,
		RESTMapper:                      mapper,
		InformersStarted:                make(chan struct{}),
		ResyncPeriod:                    period,
		ControllerManagerMetrics:        controllersmetrics.NewControllerManagerMetrics(userAgent),
	}}
	env.graph = graph
	if !whole {
		env.graph = newWatches(nil, func() metadatainformer.SharedInformerFactory {
			return metadatainformer.NewSharedInformerFactoryWithOptions(metadataClient, 0, metadatainformer.WithTransform(withOwnersOnly))
		})
	}
	env.context.GraphBuilder = garbagecollector.NewDependencyGraphBuilder(
		ctx, metadataClient, mapper, garbagecollector.DefaultIgnoredResources(), env.graph, env.context.InformersStarted)
	controllersmetrics.Register()
	return env, nil
}

// start lets the informers run. The controllers must be built by then.
func (e *environment) start(ctx context.Context) {
	e.context.InformerFactory.Start(ctx.Done())
	e.context.ObjectOrMetadataInformerFactory.Start(ctx.Done())
	e.graph.Start(ctx.Done())
	close(e.context.InformersStarted)
}

// build makes the controllers that are on: those that need other than upstream's descriptors give by hand.
func (e *environment) build(ctx context.Context) ([]app.Controller, error) {
	descriptors := app.NewControllerDescriptors()
	tokens, collector := descriptors[names.ServiceAccountTokenController], descriptors[names.GarbageCollectorController]
	delete(descriptors, names.ServiceAccountTokenController)
	delete(descriptors, names.GarbageCollectorController)
	kinds, err := e.newKinds()
	if err != nil {
		return nil, err
	}

	var first []app.Controller
	if e.context.IsControllerEnabled(tokens) && e.context.ComponentConfig.SAController.ServiceAccountKeyFile != "" {
		controller, err := e.newTokens(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", tokens.Name(), err)
		}
		first = append(first, controller)
	}
	if e.context.IsControllerEnabled(collector) {
		controller, err := e.newCollector(ctx, kinds)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", collector.Name(), err)
		}
		first = append(first, controller)
	}
	if quotas := descriptors[names.ResourceQuotaController]; !e.whole && e.context.IsControllerEnabled(quotas) {
		delete(descriptors, names.ResourceQuotaController)
		controller, err := e.newQuotas(ctx, kinds)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", quotas.Name(), err)
		}
		first = append(first, controller)
	}
	if expiry := descriptors[names.TTLAfterFinishedController]; !e.whole && e.context.IsControllerEnabled(expiry) {
		delete(descriptors, names.TTLAfterFinishedController)
		controller, err := e.newExpiry(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", expiry.Name(), err)
		}
		first = append(first, controller)
	}
	others, err := app.BuildControllers(ctx, e.context, descriptors, nil, noHealth{})
	if err != nil {
		return nil, err
	}
	return append(first, others...), nil
}

// loop is a controller made of a function.
type loop struct {
	name string
	run  func(context.Context)
}

func (l loop) Name() string            { return l.name }
func (l loop) Run(ctx context.Context) { l.run(ctx) }

// newTokens makes the controller that fills Secrets of type service-account-token.
func (e *environment) newTokens(ctx context.Context) (app.Controller, error) {
	settings := e.context.ComponentConfig.SAController
	key, err := keyutil.PrivateKeyFromFile(settings.ServiceAccountKeyFile)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	var rootCA []byte
	if settings.RootCAFile != "" {
		if rootCA, err = readCA(settings.RootCAFile); err != nil {
			return nil, err
		}
	}
	client, err := e.clients.Client("tokens-controller")
	if err != nil {
		return nil, err
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		return nil, fmt.Errorf("token generator: %w", err)
	}
	core := e.context.InformerFactory.Core().V1()
	controller, err := serviceaccountcontroller.NewTokensController(klog.FromContext(ctx), core.ServiceAccounts(), core.Secrets(),
		client, serviceaccountcontroller.TokensControllerOptions{TokenGenerator: generator, RootCA: rootCA})
	if err != nil {
		return nil, err
	}
	return loop{names.ServiceAccountTokenController, func(ctx context.Context) {
		controller.Run(ctx, int(settings.ConcurrentSATokenSyncs))
	}}, nil
}

func readCA(file string) ([]byte, error) {
	ca, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read root certificate: %w", err)
	}
	if _, err := certutil.ParseCertsPEM(ca); err != nil {
		return nil, fmt.Errorf("root certificate %s: %w", file, err)
	}
	return ca, nil
}

// newKinds asks the server for its kinds, for the garbage collector and for quotas.
func (e *environment) newKinds() (*kinds, error) {
	discovery, err := e.clients.DiscoveryClient(collectorName)
	if err != nil {
		return nil, err
	}
	kinds := newKinds(discovery, clock.RealClock{}, e.graph.forget)
	return kinds, kinds.follow(e.graph)
}

const collectorName = "generic-garbage-collector"

// newCollector makes the garbage collector, with an eye on new kinds.
func (e *environment) newCollector(ctx context.Context, kinds *kinds) (app.Controller, error) {
	const name = collectorName
	client, err := e.clients.Client(name)
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(rest.AddUserAgent(e.config.Kubeconfig, name))
	if err != nil {
		return nil, err
	}
	collector, err := garbagecollector.NewComposedGarbageCollector(ctx, client, metadataClient, e.context.RESTMapper, e.context.GraphBuilder)
	if err != nil {
		return nil, err
	}
	workers := int(e.context.ComponentConfig.GarbageCollectorController.ConcurrentGCSyncs)
	return loop{names.GarbageCollectorController, func(ctx context.Context) {
		var group wait.Group
		group.StartWithContext(ctx, func(ctx context.Context) { collector.Run(ctx, workers, kindsMaxAge) })
		group.StartWithContext(ctx, func(ctx context.Context) { collector.Sync(ctx, kinds, kindsPeriod) })
		group.Wait()
	}}, nil
}

// resyncPeriod spreads resyncs between once and twice the shortest period.
func resyncPeriod(shortest time.Duration) func() time.Duration {
	return func() time.Duration { return time.Duration(float64(shortest) * (1 + rand.Float64())) }
}

func withoutManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil && accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}

func withOwnersOnly(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
		accessor.SetAnnotations(nil)
		accessor.SetLabels(nil)
	}
	return obj, nil
}
