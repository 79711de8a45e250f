package program

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/flotilla-io/flotilla/agent/hubconn"
	"github.com/flotilla-io/flotilla/agent/kinds"
	"github.com/flotilla-io/flotilla/agent/nodeprofile"
	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/interpreters"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/setback"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/reconciler/cluster"
	"github.com/flotilla-io/flotilla/reconciler/execution"
	"github.com/flotilla-io/flotilla/reconciler/execution/seal"
	"github.com/flotilla-io/flotilla/reconciler/orphans"
)

// shutdownGrace is how long loops may take to finish their current work.
const shutdownGrace = 10 * time.Second

// forever is how long loops wait for their caches: an agent that was never connected to its
// hub has nothing else to do.
const forever = 100 * 365 * 24 * time.Hour

// newManager returns a manager whose cache holds only objects of the one cluster, and is
// filled from the disk cache while the hub is away.
func (a *agent) newManager() (ctrl.Manager, error) {
	name := a.options.clusterName
	mgr, err := ctrl.NewManager(a.hub, ctrl.Options{
		Scheme:         a.scheme,
		Logger:         a.log,
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return kinds.Mapper(), nil },
		Cache: cache.Options{
			DefaultTransform:            cache.TransformStripManagedFields(),
			NewInformer:                 a.cache.NewInformer,
			ReaderFailOnMissingInformer: true,
			DefaultWatchErrorHandler:    func(context.Context, *toolscache.Reflector, error) {}, // the connection reports
			ByObject: map[client.Object]cache.ByObject{
				&clusterv1alpha1.Cluster{}: {Field: fields.OneTermEqualSelector("metadata.name", name)},
				&workv1alpha1.Work{}:       {Namespaces: map[string]cache.Config{workv1alpha2.ExecutionNamespace(name): {}}},
			},
		},
		Client: client.Options{
			FieldValidation: metav1.FieldValidationIgnore,
			Cache:           &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Service{}}},
		},
		Controller:              config.Controller{UsePriorityQueue: ptr.To(true), CacheSyncTimeout: forever, SkipNameValidation: ptr.To(true)},
		Metrics:                 metricsserver.Options{BindAddress: orOff(a.options.metrics)},
		HealthProbeBindAddress:  orOff(a.options.health),
		GracefulShutdownTimeout: ptr.To(shutdownGrace),
	})
	if err != nil {
		return nil, fmt.Errorf("set up the loops: %w", err)
	}
	return mgr, nil
}

// orOff returns the address, or "0", which means nowhere to a manager, if it is empty.
func orOff(address string) string {
	if address == "" {
		return "0"
	}
	return address
}

// wire builds the loops of push mode for the one cluster.
func (a *agent) wire(ctx context.Context) error {
	mgr, err := a.newManager()
	if err != nil {
		return err
	}
	a.mgr = mgr
	name := a.options.clusterName
	knowledge := interpreters.New(interpreters.Options{Metrics: metrics.Registry})
	registry := members.New(members.Options{Interpreter: knowledge.Interpreter(), Gate: a.memberLease})
	registry.Count(metrics.Registry)
	a.answers = func(ctx context.Context) bool { return answers(ctx, registry, name) }
	if err := mgr.Add(registry); err != nil {
		return err
	}
	knowledge.OnChange(func(_ context.Context, affects func(schema.GroupVersionKind) bool) { registry.Reinterpret(affects) })
	events := &recorder{next: mgr.GetEventRecorderFor("flotilla-agent"), namespace: workv1alpha2.ExecutionNamespace(name), away: a.conn.Away} //nolint:staticcheck // Karmada's clients read core/v1 Events

	proof, err := seal.Load(a.options.dataDir)
	if err != nil {
		return err
	}
	carry := execution.New(mgr.GetClient(), registry, knowledge.Interpreter(), events, execution.Options{
		Serves:  func(c *clusterv1alpha1.Cluster) bool { return c.Name == name },
		Workers: a.options.workers,
		Seal:    proof,
		Hub:     hubPresence{a.conn},
		Metrics: metrics.Registry,
	})
	if err := carry.Register(mgr); err != nil {
		return err
	}
	teller, err := a.wireCluster(registry, events)
	if err != nil {
		return err
	}
	a.back = func() {
		carry.Proven(name) // Works whose statuses the hub could not take
		teller.Changed()
	}
	finder := orphans.New(mgr.GetClient(), mgr.GetAPIReader(), registry, events, orphans.Options{Own: name, Hold: func(string) *hubclaim.Hold { return a.checker.Hold() }, Metrics: metrics.Registry})
	a.checker.OnChange(finder.Wake)
	if err := finder.Register(mgr); err != nil {
		return err
	}
	if err := a.checker.Register(mgr); err != nil {
		return err
	}
	if err := knowledge.Register(ctx, mgr); err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(a.heed)); err != nil {
		return err
	}
	err = mgr.Add(manager.RunnableFunc(func(context.Context) error {
		a.awake.Store(true) // caches are read before anything else starts
		return nil
	}))
	if err != nil {
		return err
	}
	a.conn.Count(metrics.Registry)
	setback.Count(metrics.Registry, a.checker.Hold)
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("loops", a.readyz)
}

// wireCluster builds the loop that observes the member, and the publisher that reports the
// member's nodes to the hub.
func (a *agent) wireCluster(registry *members.Registry, events *recorder) (*nodeprofile.Publisher, error) {
	name, mgr := a.options.clusterName, a.mgr
	clusters := cluster.New(mgr.GetClient(), mgr.GetAPIReader(), registry, events, cluster.Options{
		Own: name, Target: a.target, Claimant: a.claimant, Marks: marker{a.checker, a.offer},
		Period: a.options.status.period, FailureThreshold: a.options.status.failure, SuccessThreshold: a.options.status.success,
	})
	estimator := clusters.Estimator()
	teller := nodeprofile.New(mgr.GetClient(), nodeprofile.Options{
		Cluster: name, Back: a.conn.Back,
		Draw: func(ctx context.Context) (map[string]string, error) {
			return draw(ctx, mgr.GetClient(), estimator, name)
		},
	})
	clusters.OnNodes = teller.Changed
	if err := clusters.Register(mgr); err != nil {
		return nil, err
	}
	return teller, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		teller.Run(ctx)
		return nil
	}))
}

// hubPresence is what the loops know of whether the hub is there.
type hubPresence struct{ *hubconn.Connection }

// Away implements lastcopy.Hub: from a hub that is held nothing is heard of Works.
func (p hubPresence) Away() error { return cmp.Or(p.Connection.Away(), p.Held()) }

const (
	// present is how recent the member's last answer must be, and how long answers waits for
	// one.
	present = 2 * time.Second
	// presentPoll is how often answers checks for one.
	presentPoll = 100 * time.Millisecond
)

// answers reports whether the member has answered a moment ago, or does so within present.
func answers(ctx context.Context, registry *members.Registry, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, present)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, presentPoll, true, func(context.Context) (bool, error) {
		_, yes, _ := registry.Answered(name, time.Time{}, present)
		return yes, nil
	}) == nil
}

// heed starts a comparison with the hub when the Cluster's condition Held differs from what
// the agent knows.
func (a *agent) heed(ctx context.Context) error {
	clusters, err := a.mgr.GetCache().GetInformer(ctx, &clusterv1alpha1.Cluster{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch the cluster: %w", err)
	}
	compare := func(obj any) {
		c, ok := obj.(*clusterv1alpha1.Cluster)
		if !ok {
			return
		}
		says, held := meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionHeld), a.conn.Held() != nil
		switch {
		case says && !held:
			a.conn.Suspect()
		case held && !says:
			a.conn.Hint()
		}
	}
	if _, err := clusters.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: compare, UpdateFunc: func(_, obj any) { compare(obj) }}); err != nil {
		return fmt.Errorf("watch the cluster: %w", err)
	}
	return nil
}

// target returns the connection to the member: that of this program.
func (a *agent) target(_ context.Context, c *clusterv1alpha1.Cluster) (members.Target, error) {
	if c.Name != a.options.clusterName {
		return members.Target{}, fmt.Errorf("%w: this agent is that of %s", members.ErrCredentials, a.options.clusterName)
	}
	return members.Target{Name: c.Name, ID: c.Spec.ID, Config: a.member}, nil
}

// claimant returns the hub that claims the member: the one that the agent knows.
func (a *agent) claimant(name string) hubclaim.Claimant {
	return hubclaim.Claimant{Hub: a.conn.Identity(), Cluster: name, Address: a.hub.Host, Mode: hubclaim.Pull, Alone: a.conn.Away() != nil}
}

// recorder emits Events only where an agent may: in its cluster's namespace on the hub, while
// the hub is not away.
type recorder struct {
	next      record.EventRecorder
	namespace string
	away      func() error
}

// Event implements execution.Recorder and cluster.Recorder.
func (r *recorder) Event(obj runtime.Object, eventType, reason, message string) {
	named, err := meta.Accessor(obj)
	if err != nil || named.GetNamespace() != r.namespace || r.away() != nil {
		return
	}
	r.next.Event(obj, eventType, reason, message)
}
