package proxy

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

const (
	// readTimeout bounds reads from the hub.
	readTimeout = 10 * time.Second
	// sweepEvery is how often the clusters in use are checked.
	sweepEvery = 10 * time.Second
	// forgetAfter is how long idle connections are kept after the last request.
	forgetAfter = 10 * time.Minute
	userAgent   = "flotilla-cluster-proxy"
)

// Options are the sources that the proxy reads. All functions are required.
type Options struct {
	// Cluster returns a Cluster, an error that apierrors.IsNotFound knows if there
	// is none. It is asked for every request, so it must be cheap. What it returns
	// must not be changed.
	Cluster func(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error)
	// Clusters returns the names of all Clusters.
	Clusters func(ctx context.Context) ([]string, error)
	// Hub returns how to reach the hub itself, with the right to impersonate.
	Hub func() *rest.Config
	// Secret returns a Secret of the hub.
	Secret func(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	// May reports whether the hub lets a user connect to a cluster with a verb.
	May func(ctx context.Context, who user.Info, verb, cluster string) (bool, error)
	// Work returns a Work of the hub, from memory.
	Work func(ctx context.Context, namespace, name string) (*workv1alpha1.Work, error)
	// AllowLoopback lets clusters be on the hub's own machine.
	AllowLoopback bool
	// Metrics is where metrics are registered; nil registers none.
	Metrics prometheus.Registerer
	// Clock is the time; nil means the machine's.
	Clock clock.WithTicker
}

// Proxy forwards requests to members. Run keeps its connections up to date; Close ends it.
type Proxy struct {
	opts  Options
	clock clock.WithTicker
	count metrics

	mu      sync.Mutex
	entries map[string]*entry // nil once it is closed
	buffers buffers
}

// entry is what is known of a cluster. Its lock is held while the hub is asked
// for Secrets, and never taken while that of the proxy is held.
type entry struct {
	mu    sync.Mutex
	gone  bool // it was replaced or dropped
	creds credentials
	role  role
	link  *link // nil until it is asked for
	used  time.Time
}

// New returns a proxy without connections.
func New(o Options) *Proxy {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Proxy{opts: o, clock: o.Clock, entries: map[string]*entry{}, count: newMetrics(o.Metrics)}
}

// Close cancels requests in flight, and closes all connections.
func (p *Proxy) Close() {
	p.mu.Lock()
	last := p.entries
	p.entries = nil
	p.mu.Unlock()
	for name, e := range last {
		p.count.gone(name)
		e.end()
	}
}

// Run maintains the connections until ctx ends: requests in flight are cancelled when their
// Cluster is deleted, or has another address, and idle connections are closed.
func (p *Proxy) Run(ctx context.Context) error {
	tick := p.clock.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
			p.sweep(ctx)
		}
	}
}

func (p *Proxy) sweep(ctx context.Context) {
	for name, e := range p.known() {
		e.mu.Lock()
		busy := e.link != nil && e.link.traffic.count() > 0
		idle := !busy && p.clock.Since(e.used) > forgetAfter
		e.mu.Unlock()
		if idle {
			p.forget(name)
			continue
		}
		if busy {
			p.check(ctx, name)
		}
	}
}

// check ends a cluster's link if the Cluster has another address or other credentials by now.
func (p *Proxy) check(ctx context.Context, name string) {
	cluster, err := p.opts.Cluster(ctx, name)
	if apierrors.IsNotFound(err) {
		p.forget(name)
		return
	}
	if err == nil {
		_, _, _ = p.resolve(ctx, cluster) // replaces the link; the next request gets the error
	}
}

func (p *Proxy) known() map[string]*entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[string]*entry, len(p.entries))
	for name, e := range p.entries {
		out[name] = e
	}
	return out
}

// entry returns what is known of a cluster, with its lock held; nil once the
// proxy is closed.
func (p *Proxy) entry(name string) *entry {
	for {
		p.mu.Lock()
		if p.entries == nil {
			p.mu.Unlock()
			return nil
		}
		e := p.entries[name]
		if e == nil {
			e = &entry{}
			p.entries[name] = e
		}
		p.mu.Unlock()
		e.mu.Lock()
		if !e.gone {
			return e
		}
		e.mu.Unlock() // it was dropped in between
	}
}

// forget ends a cluster's link and drops what is known of it.
func (p *Proxy) forget(name string) {
	p.mu.Lock()
	e, ok := p.entries[name]
	delete(p.entries, name)
	p.mu.Unlock()
	if ok {
		p.count.gone(name)
		e.end()
	}
}

// end closes the link of an entry that was dropped. mu of the
// proxy is not held: the entry may be waiting for the hub, and all other clusters
// would wait with it.
func (e *entry) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.replace(nil)
	e.gone = true
}

// replace installs a new link and closes the old one. mu of e is held.
func (e *entry) replace(by *link) {
	if e.link != nil {
		e.link.close()
	}
	e.link = by
}

// resolve returns the link to a cluster, and the credentials for it.
func (p *Proxy) resolve(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*link, credentials, error) {
	of, err := referencesOf(cluster)
	if err != nil {
		return nil, credentials{}, err
	}
	e := p.entry(cluster.Name)
	if e == nil {
		return nil, credentials{}, unavailable(cluster.Name, "the control plane is stopping")
	}
	defer e.mu.Unlock()
	e.used = p.clock.Now()
	if e.creds.of != of || p.clock.Since(e.creds.read) > fresh {
		creds, err := p.readCredentials(ctx, cluster, of)
		if err != nil {
			return nil, credentials{}, err
		}
		e.creds = creds
	}
	print := fingerprint(cluster, e.creds)
	if e.link == nil || e.link.print != print || e.link.traffic.over() {
		made, err := dialing{loopback: p.opts.AllowLoopback}.link(cluster, e.creds, print)
		if err != nil {
			e.replace(nil)
			return nil, credentials{}, err
		}
		e.replace(made)
	}
	return e.link, e.creds, nil
}

// refused has the Secrets of a cluster read again: the member did not accept the
// credentials in them.
func (p *Proxy) refused(l *link) {
	l.doubt()
	e := p.entry(l.cluster)
	if e == nil {
		return
	}
	defer e.mu.Unlock()
	e.creds.read = time.Time{}
}
