package estimators

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	estimatorapi "github.com/flotilla-io/flotilla/api/estimator"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/estimate"
)

// Why nothing is known of a cluster, where its estimator was not even asked.
var (
	// ErrNotAsked says that the cluster is in pull mode, whose estimators are not asked.
	ErrNotAsked = errors.New("estimators of clusters in pull mode are not asked")
	// ErrNoCluster says that there is no such cluster.
	ErrNoCluster = errors.New("there is no such cluster")
	// ErrResting says that the estimator did not answer lately, and is asked again later.
	ErrResting = errors.New("it did not answer lately, and is asked again later")
)

// Options say where estimators are and how they are talked to. The zero value of a field
// stands for Karmada's default.
type Options struct {
	// Namespace and Prefix are where on the hub the Service PREFIX-CLUSTER is that leads to
	// the estimator of a cluster.
	Namespace, Prefix string
	// Port is the one of that Service.
	Port int
	// Timeout is how long an answer is waited for at most, whatever the caller allows.
	Timeout time.Duration
	// NoPull leaves clusters in pull mode alone.
	NoPull bool
	// Files are what connections are secured with. The zero value secures nothing.
	Files Files
	// Dial connects to an address; nil means the network.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Events tell on a Cluster that its estimator gives no answers, and that it does again; nil: nobody is told.
	Events loop.Recorder
	// Clock is the real one if nil.
	Clock clock.PassiveClock
}

// Karmada's defaults.
const (
	DefaultNamespace = "karmada-system"
	DefaultPrefix    = "karmada-scheduler-estimator"
	DefaultPort      = 10352
	DefaultTimeout   = 3 * time.Second
)

// Estimators ask the estimators of clusters. It is safe for use by several goroutines. Use New.
type Estimators struct {
	services     client.Reader
	opts         Options
	availability availability

	mu       sync.Mutex
	clusters map[string]known
	links    map[string]*link
	closed   bool
}

// known is what counts of a Cluster.
type known struct {
	mode clusterv1alpha1.ClusterSyncMode
	uid  types.UID
}

// New returns what asks estimators. Services reads the hub's Services, as they are now: few are
// read, and rarely.
func New(services client.Reader, opts Options) *Estimators {
	if opts.Namespace == "" {
		opts.Namespace = DefaultNamespace
	}
	if opts.Prefix == "" {
		opts.Prefix = DefaultPrefix
	}
	if opts.Port == 0 {
		opts.Port = DefaultPort
	}
	if opts.Timeout <= 0 {
		opts.Timeout = DefaultTimeout
	}
	if opts.Dial == nil {
		opts.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	return &Estimators{
		services: services, opts: opts,
		availability: availability{events: opts.Events, failures: map[string]int{}, reported: map[string]bool{}},
		clusters:     map[string]known{}, links: map[string]*link{},
	}
}

// Register has what mgr's cache knows of Clusters followed, and all connections closed when mgr
// ends.
func (e *Estimators) Register(mgr ctrl.Manager) error {
	return mgr.Add(&follower{estimators: e, cache: mgr.GetCache()})
}

// Observe says that there is a cluster.
func (e *Estimators) Observe(c *clusterv1alpha1.Cluster) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clusters[c.Name] = known{c.Spec.SyncMode, c.UID}
}

// Forget says that a cluster is gone, and ends its connection.
func (e *Estimators) Forget(cluster string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.clusters, cluster)
	e.availability.forget(cluster)
	if l := e.links[cluster]; l != nil {
		delete(e.links, cluster)
		l.close()
	}
}

// close ends all connections, for good.
func (e *Estimators) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for name, l := range e.links {
		delete(e.links, name)
		l.close()
	}
}

// MaxReplicas returns how many more replicas fit on a cluster; MaxInt32 is no bound. An error
// means that nothing is known.
func (e *Estimators) MaxReplicas(ctx context.Context, cluster string, need *workv1alpha2.ReplicaRequirements, assumed []estimate.Assumed) (int32, error) {
	requirements, err := estimatorapi.NewReplicaRequirements(need)
	if err != nil {
		return 0, err
	}
	workloads, err := workloadsOf(assumed)
	if err != nil {
		return 0, err
	}
	return e.ask(ctx, cluster, func(ctx context.Context, server estimatorapi.EstimatorClient) (int32, error) {
		answer, err := server.MaxAvailableReplicas(ctx, &estimatorapi.MaxAvailableReplicasRequest{
			Cluster: cluster, ReplicaRequirements: requirements, AssumedWorkloads: workloads,
		})
		return answer.GetMaxReplicas(), err
	})
}

// MaxSets returns how many more sets of components of a workload in a namespace fit on a
// cluster; MaxInt32 is no bound. An error means that nothing is known.
func (e *Estimators) MaxSets(ctx context.Context, cluster, namespace string, components []workv1alpha2.Component, assumed []estimate.Assumed) (int32, error) {
	parts, err := estimatorapi.NewComponents(components)
	if err != nil {
		return 0, err
	}
	workloads, err := workloadsOf(assumed)
	if err != nil {
		return 0, err
	}
	return e.ask(ctx, cluster, func(ctx context.Context, server estimatorapi.EstimatorClient) (int32, error) {
		answer, err := server.MaxAvailableComponentSets(ctx, &estimatorapi.MaxAvailableComponentSetsRequest{
			Cluster: cluster, Namespace: namespace, Components: parts, AssumedWorkloads: workloads,
		})
		return answer.GetMaxSets(), err
	})
}

// Unschedulable returns how many replicas of a workload have found no node on a cluster for
// longer than a threshold. An error means that nothing is known.
func (e *Estimators) Unschedulable(ctx context.Context, cluster string, of workv1alpha2.ObjectReference, threshold time.Duration) (int32, error) {
	return e.ask(ctx, cluster, func(ctx context.Context, server estimatorapi.EstimatorClient) (int32, error) {
		answer, err := server.GetUnschedulableReplicas(withObject(ctx, of), &estimatorapi.UnschedulableReplicasRequest{
			Cluster:                cluster,
			Resource:               &estimatorapi.ObjectReference{ApiVersion: of.APIVersion, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name},
			UnschedulableThreshold: threshold.Nanoseconds(),
		})
		return answer.GetUnschedulableReplicas(), err
	})
}

// ask asks the estimator of a cluster, if it may be asked now, and takes no nonsense.
func (e *Estimators) ask(ctx context.Context, cluster string, question func(context.Context, estimatorapi.EstimatorClient) (int32, error)) (int32, error) {
	ctx, cancel := context.WithTimeout(ctx, e.opts.Timeout)
	defer cancel()
	l, of, err := e.link(ctx, cluster)
	if err != nil {
		return 0, fmt.Errorf("estimator of %s: %w", cluster, err)
	}
	answer, err := l.ask(ctx, question)
	if err == nil && answer < 0 {
		err = fmt.Errorf("it answers %d: it does not know", answer)
	}
	if err != nil && (ctx.Err() != nil || status.Code(err) == codes.DeadlineExceeded) {
		err = cmp.Or(ctx.Err(), context.DeadlineExceeded) // which gRPC reports in several ways
	}
	e.availability.observe(cluster, of.uid, err)
	if err != nil {
		return 0, fmt.Errorf("estimator of %s: %w", cluster, err)
	}
	return answer, nil
}

// link returns the connection to the estimator of a cluster, and what is known of that. It makes it where there is none, or
// one that may lead to the wrong place.
func (e *Estimators) link(ctx context.Context, cluster string) (*link, known, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	of, found := e.clusters[cluster]
	switch {
	case !found || e.closed:
		return nil, of, ErrNoCluster
	case e.opts.NoPull && of.mode == clusterv1alpha1.Pull:
		return nil, of, ErrNotAsked
	}
	now := e.opts.Clock.Now()
	was := e.links[cluster]
	if was != nil && !was.stale(now) {
		return was, of, nil
	}
	is := newLink(e.opts.Clock, now)
	if was != nil {
		is.breaker.inherit(&was.breaker)
		was.close()
	}
	e.links[cluster] = is
	go is.find(context.WithoutCancel(ctx), e.services, e.opts, cluster)
	return is, of, nil
}

// workloadsOf are what is assumed, as messages.
func workloadsOf(assumed []estimate.Assumed) ([]*estimatorapi.AssumedWorkload, error) {
	var out []*estimatorapi.AssumedWorkload
	for _, a := range assumed {
		parts, err := estimatorapi.NewComponents(a.Components)
		if err != nil {
			return nil, err
		}
		out = append(out, &estimatorapi.AssumedWorkload{Namespace: a.Namespace, Components: parts})
	}
	return out, nil
}

// follower passes to Estimators the Clusters that come and go.
type follower struct {
	estimators *Estimators
	cache      cache.Cache
}

// NeedLeaderElection keeps a stand-by up to date, too.
func (f *follower) NeedLeaderElection() bool { return false }

// Start follows until ctx ends.
func (f *follower) Start(ctx context.Context) error {
	defer f.estimators.close()
	informer, err := f.cache.GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watch clusters for their estimators: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f.estimators.Observe(obj.(*clusterv1alpha1.Cluster)) },
		UpdateFunc: func(_, after any) { f.estimators.Observe(after.(*clusterv1alpha1.Cluster)) },
		DeleteFunc: func(obj any) {
			if name, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				f.estimators.Forget(name)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch clusters for their estimators: %w", err)
	}
	<-ctx.Done()
	return informer.RemoveEventHandler(registration)
}
