package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/tenure"
)

// Options configure a manager. With the zero value, it runs without leader
// election and without a metrics listener.
type Options struct {
	// Log is the logger of the manager and its loops.
	Log logr.Logger
	// Tenure makes the loops wait for a lease, so that several replicas may run
	// against one control plane, and ends their writes when the lease is lost. Nil
	// means that there is no other replica. A Tenure is for one manager only.
	Tenure *tenure.Tenure
	// MetricsAddress is where /metrics is served; empty serves none.
	MetricsAddress string
	// HealthAddress is where /healthz and /readyz are served; empty serves none.
	HealthAddress string
	// ProfilesAddress is where profiles of the process are served; empty serves none.
	ProfilesAddress string
	// Shared is applied to objects before they are cached. It returns an object
	// without managed fields whose parts are replaced by equal ones that are in
	// memory already, or the object itself. Nil: parts are not shared.
	Shared func(runtime.Object) runtime.Object
	// Watch is used by the cache for what it can watch. Nil: all is watched by requests. It
	// must watch a kind as a whole, as the cache does.
	Watch WatchFunc
	// SeveralPerProcess allows the name of a loop to be used more than once in a
	// process, and gives loops longer to end. It is for tests that run several
	// managers.
	SeveralPerProcess bool
}

// shutdownGrace is how long loops may take to end. longGrace is for processes
// that run several managers: on a busy machine it is no fault of the loops if
// they take longer.
const (
	shutdownGrace = 10 * time.Second
	longGrace     = time.Minute
)

func (o Options) grace() time.Duration {
	if o.SeveralPerProcess {
		return longGrace
	}
	return shutdownGrace
}

// NewManager returns a manager whose loops read from one cache of the hub. They
// write to it without a client-side rate limit, as the API server's priority and
// fairness decides who waits.
func NewManager(cfg *rest.Config, scheme *runtime.Scheme, opts Options) (ctrl.Manager, error) {
	cfg = Unlimited(cfg)
	var lease resourcelock.Interface
	if opts.Tenure != nil {
		lock, err := tenure.NewLock(cfg, opts.Tenure)
		if err != nil {
			return nil, fmt.Errorf("set up the connection to the control plane: %w", err)
		}
		lease = lock
		opts.Log.Info(Competing, "identity", lock.Identity())
		cfg.Wrap(opts.Tenure.Hub)
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:         scheme,
		Logger:         opts.Log,
		MapperProvider: newKinds,
		Cache: cache.Options{
			DefaultTransform: transform(opts.Shared),
			NewInformer:      informers(opts.Watch),
			ByObject: map[client.Object]cache.ByObject{
				// Only the heartbeats of members are needed; other Leases are not
				// cached.
				&coordinationv1.Lease{}: {Namespaces: map[string]cache.Config{workv1alpha2.NamespaceKarmadaCluster: {}}},
			},
		},
		// Loops write typed objects, so that all fields exist. Warnings about
		// unknown fields would be read by nobody, and would cost the server a
		// second decoding of each object.
		Client: client.Options{FieldValidation: metav1.FieldValidationIgnore, Cache: &client.CacheOptions{
			// These are read when they are needed, so that no cache has the secrets
			// of all users.
			DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}},
		}},
		Controller: config.Controller{
			UsePriorityQueue: ptr.To(true),
			// A process with a Tenure creates its managers one after the other.
			SkipNameValidation: ptr.To(opts.SeveralPerProcess || opts.Tenure != nil),
		},
		Metrics:                             metricsserver.Options{BindAddress: addressOrOff(opts.MetricsAddress)},
		HealthProbeBindAddress:              addressOrOff(opts.HealthAddress),
		PprofBindAddress:                    addressOrOff(opts.ProfilesAddress),
		LeaderElection:                      opts.Tenure != nil,
		LeaderElectionID:                    tenure.LeaseName,
		LeaderElectionNamespace:             tenure.Namespace,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       ptr.To(tenure.LeaseDuration),
		RenewDeadline:                       ptr.To(tenure.RenewDeadline),
		RetryPeriod:                         ptr.To(tenure.RetryPeriod),
		LeaderElectionResourceLockInterface: lease,
		GracefulShutdownTimeout:             ptr.To(opts.grace()),
	})
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the control plane: %w", err)
	}
	return mgr, nil
}

// transform returns the function that is applied to objects before they are cached.
func transform(shared func(runtime.Object) runtime.Object) toolscache.TransformFunc {
	strip := cache.TransformStripManagedFields()
	if shared == nil {
		return strip
	}
	return func(in any) (any, error) {
		if obj, ok := in.(runtime.Object); ok {
			in = shared(obj)
		}
		return strip(in)
	}
}

// Unlimited returns a copy of cfg without a client-side rate limit.
func Unlimited(cfg *rest.Config) *rest.Config {
	out := rest.CopyConfig(cfg)
	out.QPS = -1
	out.Burst = 0
	out.RateLimiter = nil
	return out
}

// addressOrOff turns an empty address into "0", which turns the listener off in controller-runtime.
func addressOrOff(address string) string {
	if address == "" {
		return "0"
	}
	return address
}

// ErrLost means that the loops have ended because their lease was lost. They may
// be created again, to wait for it once more.
var ErrLost = errors.New("the lease was lost")

// Competing is logged with the identity of a replica in the lease. The identity
// is new after each start, and after each loss of the lease.
const Competing = "this replica competes for the lease of the loops"

// Leading is logged when a replica's loops begin to run.
const Leading = "this replica holds the lease: its loops run"

// Start runs a manager and its loops until ctx ends, or the tenure with which it
// was made; nil for none. Errors: ErrLost, or the manager's.
func Start(ctx context.Context, mgr ctrl.Manager, t *tenure.Tenure) error {
	if t == nil {
		return mgr.Start(ctx)
	}
	running, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		_ = t.Watch(running)
		stop()
	}()
	go func() {
		select {
		case <-mgr.Elected():
			mgr.GetLogger().Info(Leading)
		case <-running.Done():
		}
	}()
	err := mgr.Start(running)
	stop()
	<-watched
	if lost := t.Lost(); lost != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", ErrLost, lost)
	}
	return err
}
