package fence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	"github.com/flotilla-io/flotilla/controlplane/socket"
)

const (
	// aliveEvery and aliveWithin are the keep-alive interval and timeout, those of the API
	// server's own client.
	aliveEvery  = 30 * time.Second
	aliveWithin = 10 * time.Second
	// shortestAlive is the shortest keep-alive interval that the relay accepts.
	shortestAlive = 5 * time.Second
)

// Relay is a gRPC proxy between an API server and a store that runs elsewhere. It passes on
// bytes; only transactions with an epoch are decoded.
type Relay struct {
	server *grpc.Server
	store  *clientv3.Client
	socket *socket.Place
	key    string
	done   chan error
}

// NewRelay starts a relay to a store, with its socket in a folder that no other process
// holds. Key is the store's key of the epoch. The relay owns the client from then on,
// even if NewRelay returns an error.
func NewRelay(ctx context.Context, store *clientv3.Client, dir, key string) (*Relay, error) {
	r := &Relay{store: store, key: key, done: make(chan error, 1)}
	listener, err := r.listen(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("relay to the store: %w", errors.Join(err, store.Close()))
	}
	r.server = grpc.NewServer(
		grpc.ForceServerCodec(raw{}),
		grpc.UnknownServiceHandler(r.handle),
		grpc.MaxRecvMsgSize(math.MaxInt32),
		grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: shortestAlive, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: aliveEvery, Timeout: aliveWithin}),
	)
	go func() { r.done <- r.server.Serve(listener) }()
	return r, nil
}

// listen opens a socket that only the owner may use.
func (r *Relay) listen(ctx context.Context, dir string) (net.Listener, error) {
	var err error
	if r.socket, err = socket.New(dir, "relay.sock"); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", r.socket.Path)
	if err != nil {
		return nil, errors.Join(err, r.socket.Remove())
	}
	return listener, nil
}

// Endpoints are the URLs that an API server is given.
func (r *Relay) Endpoints() []string { return []string{"unix://" + r.socket.Path} }

// Close ends the relay and its connections. It may be called once.
func (r *Relay) Close() error {
	r.server.Stop()
	return errors.Join(<-r.done, r.store.Close(), r.socket.Remove())
}

// handle passes a request on, and its answers back.
func (r *Relay) handle(_ any, from grpc.ServerStream) error {
	method, ok := grpc.MethodFromServerStream(from)
	if !ok {
		return errors.New("a request without a method")
	}
	epoch, carried, err := epochOf(from.Context())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(along(from.Context()))
	defer cancel()
	if carried && method == txnMethod {
		return r.transact(ctx, from, epoch)
	}
	to, err := r.store.ActiveConnection().NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, callOptions()...)
	if err != nil {
		return err
	}
	asked := make(chan error, 1)
	go func() { asked <- ask(from, to) }()
	if err := answer(from, to); err != nil {
		return err
	}
	cancel()
	<-asked
	return nil
}

// ask passes on what the API server sends, until the stream ends.
func ask(from grpc.ServerStream, to grpc.ClientStream) error {
	for {
		f := &frame{}
		if err := from.RecvMsg(f); errors.Is(err, io.EOF) {
			return to.CloseSend()
		} else if err != nil {
			return err
		}
		if err := to.SendMsg(f); err != nil {
			return err // answer reports what became of it
		}
	}
}

// answer passes back what the store sends, until the stream ends.
func answer(from grpc.ServerStream, to grpc.ClientStream) error {
	for {
		f := &frame{}
		if err := to.RecvMsg(f); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := from.SendMsg(f); err != nil {
			return err
		}
	}
}

// transact makes the store compare the epoch.
func (r *Relay) transact(ctx context.Context, from grpc.ServerStream, epoch int64) error {
	asked := &frame{}
	if err := from.RecvMsg(asked); err != nil {
		return err
	}
	txn := &pb.TxnRequest{}
	if err := txn.Unmarshal(asked.content); err != nil {
		return fmt.Errorf("read a transaction: %w", err)
	}
	content, err := compare(txn, r.key, epoch).Marshal()
	if err != nil {
		return fmt.Errorf("write a transaction: %w", err)
	}
	answered := &frame{}
	if err := r.store.ActiveConnection().Invoke(ctx, txnMethod, &frame{content}, answered, callOptions()...); err != nil {
		return err
	}
	result := &pb.TxnResponse{}
	if err := result.Unmarshal(answered.content); err != nil {
		return fmt.Errorf("read the answer to a transaction: %w", err)
	}
	if result, err = judge(result, epoch); err != nil {
		return err
	}
	if answered.content, err = result.Marshal(); err != nil {
		return fmt.Errorf("write the answer to a transaction: %w", err)
	}
	return from.SendMsg(answered)
}

func callOptions() []grpc.CallOption {
	return []grpc.CallOption{
		grpc.ForceCodec(raw{}), grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32),
	}
}

// along is a context with the gRPC metadata of the API server's request, except what
// concerns the connection to the relay.
func along(ctx context.Context) context.Context {
	arrived, _ := metadata.FromIncomingContext(ctx)
	out := metadata.MD{}
	for name, values := range arrived {
		switch {
		case strings.HasPrefix(name, ":"), strings.HasPrefix(name, "grpc-"), name == "content-type", name == "user-agent", name == epochKey:
		default:
			out[name] = values
		}
	}
	return metadata.NewOutgoingContext(ctx, out)
}

// frame is a message that is not decoded.
type frame struct{ content []byte }

// raw is a codec that passes frames on unchanged.
type raw struct{}

// Name implements encoding.Codec. It is protobuf's name, so that etcd decodes the messages.
func (raw) Name() string { return "proto" }

// Marshal implements encoding.Codec.
func (raw) Marshal(v any) ([]byte, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("a %T is no frame", v)
	}
	return f.content, nil
}

// Unmarshal implements encoding.Codec.
func (raw) Unmarshal(content []byte, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("a %T is no frame", v)
	}
	f.content = append([]byte(nil), content...)
	return nil
}
