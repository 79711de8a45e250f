package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/flotilla-io/flotilla/controlplane/etcd"
	"github.com/flotilla-io/flotilla/controlplane/fence"
	"github.com/flotilla-io/flotilla/e2e/chaos/history"
	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/internal/localfleet"
	"github.com/flotilla-io/flotilla/internal/tenure"
)

// replicas are the names of the control planes of a fleet that has several.
var replicas = []string{"replica a", "replica b", "replica c"}

// startReplicas makes a fleet of several control planes on one store. Each runs the
// loops while it leads, and reaches the store by a link that can be cut; clients change
// over from one to another.
func startReplicas(t *testing.T) *world {
	t.Helper()
	dir := fleet.Folder(t)
	l := &writeLog{to: &journal{}, from: map[string]string{}, contenders: map[string]*contender{}}
	store, err := etcd.Start(t.Context(), etcd.Options{DataDir: filepath.Join(dir, "etcd"), Intercept: l.intercept})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Stop)
	l.socket = strings.TrimPrefix(store.Endpoints()[0], "unix://")

	links, flags := map[string]*localfleet.Link{}, map[string][]string{}
	for _, name := range replicas {
		l.contenders[name] = &contender{name: name}
		if links[name], err = localfleet.NewLinkBy(t.Context(), l.dialer(l.contenders[name])); err != nil {
			t.Fatal(err)
		}
		flags[name] = []string{
			"--etcd-servers", "http://" + links[name].Address(), "--seal-key-file", filepath.Join(dir, "seal.key"), localfleet.LoopbackSources,
		}
	}
	f, err := fleet.Start(t.Context(), fleet.Options{Dir: dir, Members: clusters, Nodes: 1, HubArgs: flags[replicas[0]]})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, f, together)
	w.log, w.links = l.to, links
	for _, name := range replicas[1:] {
		p, err := f.NewReplica(t.Context(), strings.ReplaceAll(name, " ", "-"), flags[name]...)
		if err != nil {
			t.Fatal(err)
		}
		w.hubs = append(w.hubs, p)
		if err := errors.Join(p.Start(), p.Ready(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range w.hubs {
		p.Name = replicas[i]
	}
	for _, p := range w.hubs {
		w.contenders[p] = l.contenders[p.Name]
	}
	w.rivals = w.hubs
	w.front = newFront(t, w.hubs)
	w.kubeconfig = filepath.Join(f.Dir, "front.kubeconfig")
	if err := fleet.Leading(f.Hub.Kubeconfig, w.front.Address(), w.kubeconfig); err != nil {
		t.Fatal(err)
	}
	w.connect(t)
	w.enlist(t)
	return w
}

// front is where clients find a control plane, as they would by a load balancer.
type front struct {
	*localfleet.Link
	hubs  []*localfleet.Process
	hosts map[*localfleet.Process]string

	mu sync.Mutex
	at *localfleet.Process
}

func newFront(t *testing.T, hubs []*localfleet.Process) *front {
	t.Helper()
	f := &front{hubs: hubs, hosts: map[*localfleet.Process]string{}, at: hubs[0]}
	var err error
	for _, p := range hubs {
		if f.hosts[p], err = fleet.Host(p.Kubeconfig); err != nil {
			t.Fatal(err)
		}
	}
	f.Link, err = localfleet.NewLinkBy(t.Context(), func() (net.Conn, error) { return net.DialTimeout("tcp", f.hosts[f.now()], answer) })
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// now is where clients are led to.
func (f *front) now() *localfleet.Process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at
}

// turn leads clients to the next control plane. Their connections end.
func (f *front) turn() {
	f.mu.Lock()
	f.at = f.hubs[(slices.Index(f.hubs, f.at)+1)%len(f.hubs)]
	f.mu.Unlock()
	f.Cut()
	f.Mend()
}

// writeLog is what a store reports the writes of loops that it has accepted: of which
// epoch each was, by the transaction that compares it, and from which replica, by the
// name of the connection.
type writeLog struct {
	to     *journal
	socket string
	dials  atomic.Int64

	mu         sync.Mutex
	from       map[string]string     // which start of a replica has opened a connection, by its name
	contenders map[string]*contender // by their names
}

// dialer returns what connects a replica to the store, with names that show it.
func (l *writeLog) dialer(c *contender) func() (net.Conn, error) {
	return func() (net.Conn, error) {
		name := fmt.Sprintf("@chaos-%p-%d", l, l.dials.Add(1))
		l.mu.Lock()
		l.from[name] = c.who()
		l.mu.Unlock()
		d := net.Dialer{Timeout: answer, LocalAddr: &net.UnixAddr{Name: name, Net: "unix"}}
		return d.Dial("unix", l.socket) //nolint:noctx // the link ends it
	}
}

var (
	epochKey = fence.Key("")
	leaseKey = strings.TrimSuffix(epochKey, tenure.EpochName) + tenure.LeaseName
)

// intercept notes a transaction if it has written something in an epoch, or if it has
// renewed the lease.
func (l *writeLog) intercept(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	begun := time.Now()
	answer, err := next(ctx, req)
	txn, asked := req.(*pb.TxnRequest)
	done, answered := answer.(*pb.TxnResponse)
	if err != nil || !asked || !answered || !done.Succeeded {
		return answer, err
	}
	from, ok := peer.FromContext(ctx)
	key := written(txn)
	if !ok || key == "" {
		return answer, err
	}
	l.mu.Lock()
	by := l.from[from.Addr.String()]
	l.mu.Unlock()
	if key == leaseKey {
		name, _, _ := strings.Cut(by, ",")
		if c := l.contenders[name]; c != nil {
			c.renew()
		}
	}
	if epoch := epochOf(txn); epoch != 0 && key != epochKey { // whoever takes over compares it to make the next one
		l.to.requested(history.Request{By: by, Epoch: epoch, Revision: done.Header.Revision, What: key, Begun: begun, Ended: time.Now()})
	}
	return answer, err
}

// written is the key that a transaction writes; empty if it reads.
func written(txn *pb.TxnRequest) string {
	for _, op := range txn.Success {
		if put := op.GetRequestPut(); put != nil {
			return string(put.Key)
		}
		if gone := op.GetRequestDeleteRange(); gone != nil {
			return string(gone.Key)
		}
	}
	return ""
}

// epochOf is the epoch that a transaction compares; 0 if it has none.
func epochOf(txn *pb.TxnRequest) int64 {
	for _, c := range txn.Compare {
		if string(c.Key) == epochKey && c.Target == pb.Compare_MOD {
			return c.GetModRevision()
		}
	}
	return 0
}
