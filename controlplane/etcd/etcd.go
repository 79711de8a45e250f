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
	// maxRequestBytes is how large one object may be: more than the 3 MiB that Kubernetes
	// itself allows.
	maxRequestBytes = 4 << 20
	// snapshotCount is how many writes are at most replayed when a store starts, and kept
	// in memory until the next snapshot.
	snapshotCount = 2_000
	// catchUpEntries is how many writes stay in memory after a snapshot. They are for
	// members that are behind, and this store has none.
	catchUpEntries = 100
	nominalURL     = "http://127.0.0.1:2379" // recorded as the member's address; nothing listens there
	// segmentBytes is the size of the log segments that etcd allocates ahead, two at a time.
	// If an allocation fails, etcd records the error and ends one segment later, even if
	// there is space by then. So a segment must fit into the space that is left when writes
	// are refused; etcd's own 64 MB would be half of that.
	segmentBytes, etcdSegmentBytes = 8 << 20, 64_000_000
	// socketName is the file that a store listens on, and socketScheme what makes a URL of it.
	socketName, socketScheme = "etcd.sock", "unix://"
)

// Options configure a store.
type Options struct {
	// DataDir is the folder of the store; it is created if missing.
	DataDir string
	// QuotaBytes is how large the store may grow; 0 means DefaultQuota.
	QuotaBytes int64
	// Log receives errors, above all the reason for which etcd ends the process. The zero
	// value drops them.
	Log logr.Logger
	// UnsafeNoFsync trades durability for speed. For tests only: a crash of the
	// machine loses data, a crash of the process does not.
	UnsafeNoFsync bool
	// Intercept is called for all unary requests; it may be nil.
	Intercept grpc.UnaryServerInterceptor
}

// Server is a running store.
type Server struct {
	etcd      *embed.Etcd
	client    *clientv3.Client
	endpoint  string
	quota     int64
	compacted int64 // the revision to which Relieve has compacted
	socket    *socket.Place
	lock      *os.File
	stop      sync.Once
	stopping  atomic.Bool
}

// Start runs a store and returns when it is ready, or with ctx's error if ctx ends before.
// The store listens on a Unix socket that only the owner may open, so it needs neither a
// port nor certificates. It runs until Stop.
//
// The error is datadir.ErrInUse if another process has the store open.
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
	if s.socket, err = socket.New(opts.DataDir, socketName); err != nil {
		s.lock.Close()
		return nil, fmt.Errorf("etcd: %w", err)
	}
	s.endpoint = socketScheme + s.socket.Path
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

// open opens a store. If ctx ends before, it returns and closes the store once etcd, which
// does not stop by itself, has opened it.
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

// lock locks the folder for this store. Without it, etcd would wait forever for a database
// that is in use, after its socket has already replaced that of the other process.
func lock(dir string) (*os.File, error) {
	folderLock, err := datadir.Lock(dir)
	if err != nil {
		return nil, err
	}
	database, err := datadir.Lock(Database(dir)) // older versions lock only the database
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return folderLock, nil
	case err != nil:
		folderLock.Close()
		return nil, err
	}
	database.Close() // etcd locks it itself
	return folderLock, nil
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

// Endpoints returns the URLs for clients of the store.
func (s *Server) Endpoints() []string { return []string{s.endpoint} }

// Database returns the path of the database file of a store in a folder. The file grows, and
// Relieve replaces it.
func Database(dir string) string { return filepath.Join(dir, "member", "snap", "db") }

// Err returns a channel for the error of a store that ended by itself. Stop closes it.
func (s *Server) Err() <-chan error { return s.etcd.Err() }

// Revision returns the number of the last write. The difference of two revisions is how many
// transactions wrote in between.
func (s *Server) Revision(ctx context.Context) (int64, error) {
	answer, err := s.client.Get(ctx, "flotilla.io/revision", clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("etcd revision: %w", err)
	}
	return answer.Header.Revision, nil
}

// Has reports whether a key exists.
func (s *Server) Has(ctx context.Context, key string) (bool, error) {
	answer, err := s.client.Get(ctx, key, clientv3.WithCountOnly())
	if err != nil {
		return false, fmt.Errorf("etcd key %s: %w", key, err)
	}
	return answer.Count > 0, nil
}

// Written returns the keys that were written after a revision and still exist, sorted. It
// scans every key, so it is for tests and measurements.
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

// Stop ends the store. Acknowledged writes are on disk. It may be called twice.
func (s *Server) Stop() { s.stop.Do(s.shutDown) }

func (s *Server) shutDown() {
	s.stopping.Store(true)
	if s.client != nil {
		_ = s.client.Close() // pending requests end with the store
	}
	if s.etcd != nil {
		s.etcd.Close()
	}
	_ = s.socket.Remove() // the next start removes what is left of it
	s.lock.Close()
}
