package estimator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"

	estimatorapi "github.com/flotilla-io/flotilla/api/estimator"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/reconciler/cluster/capacity"
)

// Limits for requests and connections.
const (
	maxMessage     = 4 << 20
	maxComponents  = 256   // of one workload
	maxAssumed     = 5_000 // components of all that is assumed
	maxConnections = 256
	maxStreams     = 256
	greeting       = 10 * time.Second
	farewell       = 5 * time.Second
)

// Answers estimates for one cluster. MaxInt32 means no bound; an error means that nothing is
// known.
type Answers interface {
	MaxReplicas(ctx context.Context, cluster string, need *workv1alpha2.ReplicaRequirements, assumed []estimate.Assumed) (int32, error)
	MaxSets(ctx context.Context, cluster, namespace string, components []workv1alpha2.Component, assumed []estimate.Assumed) (int32, error)
	Unschedulable(ctx context.Context, cluster string, of workv1alpha2.ObjectReference, threshold time.Duration) (int32, error)
}

// Options tune a server.
type Options struct {
	// Cluster is the name of the cluster: requests about others are refused.
	Cluster string
	// Assumed takes workloads into account that clients expect there and that are not
	// seen yet.
	Assumed bool
	// Parallelism is how many requests are answered at the same time; the others wait.
	Parallelism int
	// Metrics is where the metrics are registered; it may be nil.
	Metrics prometheus.Registerer
	// Clock is the real one if nil.
	Clock clock.PassiveClock
}

// Server serves estimates for one cluster. Use New.
type Server struct {
	estimatorapi.UnimplementedEstimatorServer

	answers Answers
	opts    Options
	turns   chan struct{}
	counts  counts
}

// New returns a server that gets its estimates from answers.
func New(answers Answers, opts Options) *Server {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	return &Server{answers: answers, opts: opts, turns: make(chan struct{}, max(opts.Parallelism, 1)), counts: newCounts(opts.Metrics)}
}

// Serve serves until ctx ends. It closes the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener, secured credentials.TransportCredentials) error {
	server := grpc.NewServer(
		grpc.Creds(secured), grpc.MaxRecvMsgSize(maxMessage), grpc.MaxConcurrentStreams(maxStreams), grpc.ConnectionTimeout(greeting),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: greeting}),
		grpc.UnaryInterceptor(s.intercept(logr.FromContextOrDiscard(ctx))),
	)
	estimatorapi.RegisterEstimatorServer(server, s)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(netutil.LimitListener(listener, maxConnections)) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve estimates: %w", err)
	case <-ctx.Done():
	}
	timer := time.AfterFunc(farewell, server.Stop)
	defer timer.Stop()
	server.GracefulStop()
	<-ended
	return nil
}

// intercept limits how many requests run at a time, counts them, and recovers from a panic in
// one of them.
func (s *Server) intercept(log logr.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, question any, info *grpc.UnaryServerInfo, answer grpc.UnaryHandler) (out any, err error) {
		began := s.opts.Clock.Now()
		defer func() {
			if fault := recover(); fault != nil {
				log.Error(fmt.Errorf("%v", fault), "A question could not be answered", "method", info.FullMethod)
				out, err = nil, status.Error(codes.Internal, "the estimator has a fault: see its log")
			}
			s.counts.answered(info.FullMethod, s.opts.Clock.Since(began), err)
			log.V(4).Info("Answered", "method", info.FullMethod, "object", metadata.ValueFromIncomingContext(ctx, "object"), "answer", out, "error", err)
		}()
		select {
		case s.turns <- struct{}{}:
			defer func() { <-s.turns }()
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		return answer(ctx, question)
	}
}

// MaxAvailableReplicas implements the service.
func (s *Server) MaxAvailableReplicas(ctx context.Context, q *estimatorapi.MaxAvailableReplicasRequest) (*estimatorapi.MaxAvailableReplicasResponse, error) {
	if err := s.isAbout(q.Cluster); err != nil {
		return nil, err
	}
	need, err := q.ReplicaRequirements.Need()
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	assumed, err := s.assumed(q.AssumedWorkloads)
	if err != nil {
		return nil, err
	}
	most, err := s.answers.MaxReplicas(ctx, q.Cluster, need, assumed)
	if err != nil {
		return nil, failure(err)
	}
	return &estimatorapi.MaxAvailableReplicasResponse{MaxReplicas: most}, nil
}

// MaxAvailableComponentSets implements the service.
func (s *Server) MaxAvailableComponentSets(ctx context.Context, q *estimatorapi.MaxAvailableComponentSetsRequest) (*estimatorapi.MaxAvailableComponentSetsResponse, error) {
	if err := s.isAbout(q.Cluster); err != nil {
		return nil, err
	}
	if len(q.Components) > maxComponents {
		return nil, status.Errorf(codes.InvalidArgument, "the workload has %d components: at most %d are counted", len(q.Components), maxComponents)
	}
	components, err := estimatorapi.ComponentsOf(q.Components)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	assumed, err := s.assumed(q.AssumedWorkloads)
	if err != nil {
		return nil, err
	}
	most, err := s.answers.MaxSets(ctx, q.Cluster, q.Namespace, components, assumed)
	if err != nil {
		return nil, failure(err)
	}
	return &estimatorapi.MaxAvailableComponentSetsResponse{MaxSets: most}, nil
}

// GetUnschedulableReplicas implements the service.
func (s *Server) GetUnschedulableReplicas(ctx context.Context, q *estimatorapi.UnschedulableReplicasRequest) (*estimatorapi.UnschedulableReplicasResponse, error) {
	if err := s.isAbout(q.Cluster); err != nil {
		return nil, err
	}
	of := workv1alpha2.ObjectReference{
		APIVersion: q.Resource.GetApiVersion(), Kind: q.Resource.GetKind(), Namespace: q.Resource.GetNamespace(), Name: q.Resource.GetName(),
	}
	if of.Kind == "" || of.Name == "" {
		return nil, status.Error(codes.InvalidArgument, "the question names no workload")
	}
	count, err := s.answers.Unschedulable(ctx, q.Cluster, of, max(time.Duration(q.UnschedulableThreshold), 0))
	if err != nil {
		return nil, failure(err)
	}
	return &estimatorapi.UnschedulableReplicasResponse{UnschedulableReplicas: count}, nil
}

// isAbout returns an error for a request about another cluster.
func (s *Server) isAbout(cluster string) error {
	if cluster == s.opts.Cluster {
		return nil
	}
	return status.Errorf(codes.InvalidArgument, "this is the estimator of the cluster %q, not of %q", s.opts.Cluster, cluster)
}

// assumed reads the workloads that are expected in the cluster; nil if Options.Assumed is
// false.
func (s *Server) assumed(workloads []*estimatorapi.AssumedWorkload) ([]estimate.Assumed, error) {
	if !s.opts.Assumed {
		return nil, nil
	}
	var out []estimate.Assumed
	count := 0
	for _, w := range workloads {
		if count += len(w.GetComponents()); count > maxAssumed {
			return nil, status.Errorf(codes.InvalidArgument, "more than %d components are assumed to run", maxAssumed)
		}
		components, err := estimatorapi.ComponentsOf(w.GetComponents())
		if err != nil {
			return nil, status.Error(codes.InvalidArgument, "what is assumed to run: "+err.Error())
		}
		out = append(out, estimate.Assumed{Namespace: w.GetNamespace(), Components: components})
	}
	return out, nil
}

// failure returns err with the gRPC code that shows whether a retry is worthwhile.
func failure(err error) error {
	switch {
	case errors.Is(err, capacity.ErrUnknown):
		return status.Error(codes.Unavailable, err.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return status.FromContextError(err).Err()
	default:
		return status.Error(codes.InvalidArgument, err.Error())
	}
}
