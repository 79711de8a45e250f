package estimators

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	estimatorapi "github.com/flotilla-io/flotilla/api/estimator"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

const (
	// connectWithin is how long a connection may take, and a look for the Service.
	connectWithin = 5 * time.Second
	// resolvePeriod is how old the addresses of an estimator that does not answer may get.
	resolvePeriod = 30 * time.Second
	// maxAnswer is how long a message may be that has one number.
	maxAnswer = 4 << 10
)

// link is the way to the estimator of one cluster.
type link struct {
	clock    clock.PassiveClock
	resolved time.Time // when it was made
	found    chan struct{}
	breaker  breaker

	mu     sync.Mutex
	conn   *grpc.ClientConn // nil until found is closed, and where there is no way
	err    error            // why there is no way
	closed bool
}

func newLink(clock clock.PassiveClock, now time.Time) *link {
	return &link{clock: clock, resolved: now, found: make(chan struct{})}
}

// stale reports whether the way should be looked for again: it led nowhere lately.
func (l *link) stale(now time.Time) bool {
	select {
	case <-l.found:
	default:
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return (l.err != nil || l.breaker.failing()) && now.Sub(l.resolved) >= resolvePeriod
}

// find looks for the estimator, and opens the connection, which connects when it is used first.
func (l *link) find(ctx context.Context, services client.Reader, opts Options, cluster string) {
	defer close(l.found)
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	conn, err := open(ctx, services, opts, cluster)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn, l.err = conn, err
	if l.closed && conn != nil {
		_ = conn.Close()
	}
}

// close ends the connection, also one that is not open yet.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.conn != nil {
		_ = l.conn.Close() // it may be closed already
	}
}

// ask asks one question, if the estimator answers at all.
func (l *link) ask(ctx context.Context, question func(context.Context, estimatorapi.EstimatorClient) (int32, error)) (int32, error) {
	select {
	case <-l.found:
	case <-ctx.Done():
		return 0, fmt.Errorf("look for it: %w", ctx.Err())
	}
	l.mu.Lock()
	conn, err := l.conn, l.err
	l.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if !l.breaker.enter(l.clock.Now()) {
		return 0, ErrResting
	}
	answer, err := question(ctx, estimatorapi.NewEstimatorClient(conn))
	l.breaker.leave(l.clock.Now(), outcomeOf(err))
	return answer, err
}

// outcomeOf is what an answer says about who gave it.
func outcomeOf(err error) outcome {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded:
		return silent
	case codes.Canceled:
		return unknown // whoever asked does not want to know any more
	default:
		return answered // with a number, or with what is wrong about the question
	}
}

// open returns a connection to the estimator of a cluster.
func open(ctx context.Context, services client.Reader, opts Options, cluster string) (*grpc.ClientConn, error) {
	addresses, err := resolve(ctx, services, opts, cluster)
	if err != nil {
		return nil, err
	}
	secured, err := opts.Files.credentials()
	if err != nil {
		return nil, err
	}
	var state resolver.State
	for _, address := range addresses {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: address, ServerName: address})
	}
	known := manual.NewBuilderWithScheme("estimator")
	known.InitialState(state)
	conn, err := grpc.NewClient(known.Scheme()+":///"+cluster,
		grpc.WithResolvers(known), grpc.WithTransportCredentials(secured), grpc.WithNoProxy(), grpc.WithDisableServiceConfig(),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return opts.Dial(ctx, address) }),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: time.Second, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 30 * time.Second},
			MinConnectTimeout: connectWithin,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: connectWithin}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
	)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return conn, nil
}

// withObject sends an estimator what a question is about, for its log.
func withObject(ctx context.Context, of workv1alpha2.ObjectReference) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "object", fmt.Sprintf("kind=%s, name=%s/%s", of.Kind, of.Namespace, of.Name))
}
