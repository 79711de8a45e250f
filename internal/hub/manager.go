package hub

import (
	"fmt"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Options tune a manager. The zero value runs without leader election and
// without a metrics listener.
type Options struct {
	// Log receives what the manager and its loops log.
	Log logr.Logger
	// LeaderElection makes the loops wait for a lease, so that several
	// replicas may run against one control plane.
	LeaderElection bool
	// MetricsAddress is where /metrics is served; empty serves none.
	MetricsAddress string
	// HealthAddress is where /healthz and /readyz are served; empty serves none.
	HealthAddress string
	// Shared returns an object that was read made of what else this process has in
	// memory of it, without managed fields, or the object itself. Nil: the process
	// has none of them.
	Shared func(runtime.Object) runtime.Object
	// SeveralPerProcess lifts the rule that a loop's name is used once in a
	// process. Tests that run more than one manager need it.
	SeveralPerProcess bool
}

// leaseName is the lease that the loops of several replicas compete for.
const leaseName = "flotilla-controllers"

// shutdownGrace is how long loops may take to finish what they are doing.
const shutdownGrace = 10 * time.Second

// NewManager returns a manager whose loops read from one cache of the hub and
// write to it without a rate limit of the client's own: the server's priority
// and fairness decides who waits.
func NewManager(cfg *rest.Config, scheme *runtime.Scheme, opts Options) (ctrl.Manager, error) {
	mgr, err := ctrl.NewManager(Unlimited(cfg), ctrl.Options{
		Scheme: scheme,
		Logger: opts.Log,
		Cache: cache.Options{
			DefaultTransform: transform(opts.Shared),
			ByObject: map[client.Object]cache.ByObject{
				// Heartbeats of members; others' leases are nobody's business.
				&coordinationv1.Lease{}: {Namespaces: map[string]cache.Config{workv1alpha2.NamespaceKarmadaCluster: {}}},
			},
		},
		// What the loops write has the fields of its types; a warning about a field
		// would reach nobody, and costs the server a second look at each.
		Client: client.Options{FieldValidation: metav1.FieldValidationIgnore, Cache: &client.CacheOptions{
			// Read when needed: no loop's cache holds all of the users' secrets.
			DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}},
		}},
		Controller: config.Controller{
			UsePriorityQueue:   ptr.To(true),
			SkipNameValidation: ptr.To(opts.SeveralPerProcess),
		},
		Metrics:                       metricsserver.Options{BindAddress: addressOrOff(opts.MetricsAddress)},
		HealthProbeBindAddress:        addressOrOff(opts.HealthAddress),
		LeaderElection:                opts.LeaderElection,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       "karmada-system",
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       ptr.To(shutdownGrace),
	})
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the control plane: %w", err)
	}
	return mgr, nil
}

// transform returns what objects go through on their way into the cache.
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

// addressOrOff knows the ways to say "nowhere".
func addressOrOff(address string) string {
	if address == "" {
		return "0"
	}
	return address
}
