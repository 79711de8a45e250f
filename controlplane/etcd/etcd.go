package etcd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/flotilla-io/flotilla/controlplane/datadir"
	"github.com/flotilla-io/flotilla/controlplane/socket"
)

const (
	// DefaultQuota is how many bytes the store may grow to.
	DefaultQuota = 8 << 30
	// maxRequestBytes is how large one object may be, with room for what
	// Kubernetes itself lets through (3 MiB).
	maxRequestBytes = 4 << 20
	// snapshotCount is how many writes are replayed at most when a store starts,
	// and in memory until more follow.
	snapshotCount = 2_000
	// catchUpEntries is how many writes are in memory otherwise. They are for
	// members that are behind, of which this store has none.
	catchUpEntries = 100
	nominalURL     = "http://127.0.0.1:2379" // recorded as the member's address; nothing listens there
	// segmentBytes is how much room etcd takes ahead for its log, twice. Where there is
	// none it notes a fault that it dies of one segment later, however much room there
	// is by then: a segment has to fit into what is left when writes are refused, of
	// which etcd's own 64 MB are half.
	segmentBytes, etcdSegmentBytes = 8 << 20, 64_000_000
)

// Options say where a store lives and what it may take.
type Options struct {
	// DataDir is the folder of the store; it is made when missing.
	DataDir string
	// QuotaBytes is how large the store may grow; 0 means DefaultQuota.
	QuotaBytes int64
	// Log receives what goes wrong, the reason before all for which etcd ends the
	// process. The zero value drops it.
	Log logr.Logger
	// UnsafeNoFsync trades durability for speed. For tests only: a crash of the
	// machine loses data, a crash of the process does not.
	UnsafeNoFsync bool
	// Intercept sees all requests that are no streams; nil: nobody does.
	Intercept grpc.UnaryServerInterceptor
}

// Server is a running store.
type Server struct {
	etcd      *embed.Etcd
	client    *clientv3.Client
	endpoint  string
	quota     int64
	compacted int64 // up to this revision, by Relieve
	socket    *socket.Place
	lock      *os.File
	stop      sync.Once
	stopping  atomic.Bool
}

// Start runs a store and returns when it answers, or with ctx' error when ctx
// ends before. It listens on a Unix socket that only the owner may open, so it
// needs neither a port nor certificates. The store lives until Stop.
//
// Errors: datadir.ErrInUse if somebody else has the store open.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if err := os.MkdirAll(opts.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	if atomic.LoadInt64(&wal.SegmentSizeBytes) == etcdSegmentBytes { // another store of this process reads it
		atomic.CompareAndSwapInt64(&wal.SegmentSizeBytes, etcdSegmentBytes, segmentBytes) // the library has no option for it
	}
	s := &Server{quota: opts.QuotaBytes}
	if s.quota == 0 {
		s.quota = DefaultQuota
	}
	var err error
	if s.lock, err = lock(opts.DataDir); err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	if s.socket, err = socket.New(opts.DataDir, "etcd.sock"); err != nil {
		s.lock.Close()
		return nil, fmt.Errorf("etcd: %w", err)
	}
	s.endpoint = "unix://" + s.socket.Path
	if err := s.start(ctx, s.config(opts)); err != nil {
		s.Stop()
		return nil, fmt.Errorf("etcd in %s: %w", opts.DataDir, err)
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, cfg *embed.Config) error {
	var err error
	if s.etcd, err = open(ctx, cfg); err != nil {
		return err
	}
	select {
	case <-s.etcd.Server.ReadyNotify():
	case err := <-s.etcd.Err():
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
	s.client, err = clientv3.New(clientv3.Config{Endpoints: []string{s.endpoint}, Logger: zap.NewNop()})
	return err
}

// open opens a store, or leaves it as it is when ctx ends: etcd itself would go on.
func open(ctx context.Context, cfg *embed.Config) (*embed.Etcd, error) {
	type opened struct {
		etcd *embed.Etcd
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		is, err := embed.StartEtcd(cfg)
		done <- opened{is, err}
	}()
	select {
	case is := <-done:
		return is.etcd, is.err
	case <-ctx.Done():
		go func() {
			if late := <-done; late.etcd != nil {
				late.etcd.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// lock takes a folder as this store's own. etcd would wait for ever for its database,
// with its socket in the place of the other's by then.
func lock(dir string) (*os.File, error) {
	held, err := datadir.Lock(dir)
	if err != nil {
		return nil, err
	}
	database, err := datadir.Lock(Database(dir)) // an older version has nothing else
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return held, nil
	case err != nil:
		held.Close()
		return nil, err
	}
	database.Close() // for etcd to take
	return held, nil
}

func (s *Server) config(opts Options) *embed.Config {
	nominal, _ := url.Parse(nominalURL) // a constant that parses
	cfg := embed.NewConfig()
	cfg.Name = "flotilla"
	cfg.Dir = opts.DataDir
	cfg.ListenClientUrls = []url.URL{{Scheme: "unix", Path: s.socket.Path}}
	cfg.ListenPeerUrls = nil // a store of one member has no peers
	cfg.AdvertiseClientUrls = []url.URL{*nominal}
	cfg.AdvertisePeerUrls = []url.URL{*nominal}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newLog(opts.Log, opts.DataDir, &s.stopping))
	cfg.SnapshotCount = snapshotCount
	cfg.SnapshotCatchUpEntries = catchUpEntries
	cfg.MaxRequestBytes = maxRequestBytes
	cfg.UnsafeNoFsync = opts.UnsafeNoFsync
	cfg.QuotaBackendBytes = s.quota
	if opts.Intercept != nil {
		cfg.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.ChainUnaryInterceptor(opts.Intercept)}
	}
	return cfg
}

// Endpoints are the URLs that a client of the store is given.
func (s *Server) Endpoints() []string { return []string{s.endpoint} }

// Database is the file that holds what a store in a folder keeps. It grows, and
// Relieve replaces it.
func Database(dir string) string { return filepath.Join(dir, "member", "snap", "db") }

// Err receives the error of a store that ended by itself. It is closed by Stop.
func (s *Server) Err() <-chan error { return s.etcd.Err() }

// Revision is the number of the last write; the difference of two is how many
// transactions wrote something in between.
func (s *Server) Revision(ctx context.Context) (int64, error) {
	answer, err := s.client.Get(ctx, "flotilla.io/revision", clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("etcd revision: %w", err)
	}
	return answer.Header.Revision, nil
}

// Has reports whether there is a key.
func (s *Server) Has(ctx context.Context, key string) (bool, error) {
	answer, err := s.client.Get(ctx, key, clientv3.WithCountOnly())
	if err != nil {
		return false, fmt.Errorf("etcd key %s: %w", key, err)
	}
	return answer.Count > 0, nil
}

// Written lists the keys that were written after a revision and still exist,
// sorted. It reads every key: it is for tests and measurements.
func (s *Server) Written(ctx context.Context, after int64) ([]string, error) {
	answer, err := s.client.Get(ctx, "", clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithMinModRev(after+1))
	if err != nil {
		return nil, fmt.Errorf("etcd keys since %d: %w", after, err)
	}
	keys := make([]string, 0, len(answer.Kvs))
	for _, kv := range answer.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys, nil
}

// Stop ends the store: what was acknowledged is on disk. It may be called twice.
func (s *Server) Stop() { s.stop.Do(s.shutDown) }

func (s *Server) shutDown() {
	s.stopping.Store(true)
	if s.client != nil {
		_ = s.client.Close() // what is under way ends with the store
	}
	if s.etcd != nil {
		s.etcd.Close()
	}
	_ = s.socket.Remove() // what is left of it the next start removes
	s.lock.Close()
}
