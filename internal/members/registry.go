package members

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/members/transport"
	"github.com/flotilla-io/flotilla/internal/taskgroup"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// Options are what all members share.
type Options struct {
	// Interpreter reads status and health from members' objects.
	Interpreter Interpreter
	// Clock is the time; nil means the machine's.
	Clock clock.WithTicker
	// RequestTimeout is how long one request may take, watches aside; zero
	// means 30 seconds.
	RequestTimeout time.Duration
	// Gate is asked immediately before each write whether members may be written to; nil:
	// always.
	Gate transport.Gate
}

// Target is a cluster to connect to, and how.
type Target struct {
	// Name is the cluster's name in the hub.
	Name string
	// ID is the identity that the cluster was registered with; empty accepts
	// any cluster.
	ID string
	// Config is the cluster's address and the credentials for it.
	Config *rest.Config
	// Route distinguishes two ways to one address that Config cannot be compared
	// by, such as proxies. It may be empty.
	Route string
	// Claimant returns the hub that claims the member. Nil, and a zero answer, claim nothing. It is
	// called at each probe, and must not block.
	Claimant func() hubclaim.Claimant
	// Marks checks the marks that the member carries; nil does not.
	Marks Marker
}

// Handler receives the events of members. Its methods must not block.
type Handler interface {
	// Proven: the member may be written to, for the first time or again.
	Proven(cluster string)
	// Changed: a managed object was made, changed or removed.
	Changed(cluster string, observed *Observed)
	// Synced: reads of a kind that were unknown so far are known now.
	Synced(cluster string, gvk schema.GroupVersionKind)
	// KindsChanged: the member may serve other kinds than before.
	KindsChanged(cluster string)
}

// Registry holds the members by their cluster's name.
type Registry struct {
	options Options
	tasks   *taskgroup.Group

	mu       sync.RWMutex
	members  map[string]*entry
	handlers handlers
}

type entry struct {
	member *Member
	print  targetPrint
	task   *taskgroup.Task
}

// New returns a registry without members.
func New(o Options) *Registry {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.RequestTimeout == 0 {
		o.RequestTimeout = defaultTimeout
	}
	return &Registry{options: o, tasks: taskgroup.New(), members: map[string]*entry{}}
}

// Handle adds a handler of the events of members. It is called before the
// first Connect.
func (r *Registry) Handle(h Handler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handlers = append(r.handlers, h)
}

// Start runs the members' watches until ctx ends.
func (r *Registry) Start(ctx context.Context) error {
	r.tasks.Run(ctx)
	return nil
}

// Connect returns the connection to target. It sends nothing. A connection that
// stands is returned as it is, and goes on with the target's credentials if these
// are others; if its certificates or its proxy are, the member has to prove itself
// again. A connection to another address or for another identity is closed first; what
// was watched there is watched here, and what is missing here is reported.
func (r *Registry) Connect(target Target) (*Member, error) {
	is := printOf(target)
	r.mu.Lock()
	defer r.mu.Unlock()
	old, ok := r.members[target.Name]
	switch {
	case ok && old.print == is:
		return old.member, nil
	case ok && old.print.place == is.place:
		err := old.member.transport.Connect(target.Config, func() {
			if old.print.way != is.way {
				old.member.Doubt()
			}
		})
		if err != nil {
			return nil, err
		}
		alert(old.member) // the member may be healthy now
		old.print = is
		return old.member, nil
	}
	member, err := connect(target, r.options, r.handlers)
	if err != nil {
		return nil, err
	}
	if ok {
		member.informer.Succeed(old.member.informer)
		old.task.Stop()
	}
	r.members[target.Name] = &entry{member: member, print: is, task: r.tasks.Go(member.run)}
	return member, nil
}

// Disconnect closes the connection to a cluster, if there is one.
func (r *Registry) Disconnect(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.members[cluster]; ok {
		old.task.Stop()
		delete(r.members, cluster)
	}
}

// Get returns the member of a cluster, if it is connected and has proved to be
// the registered one.
func (r *Registry) Get(cluster string) (*Member, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	e, ok := r.members[cluster]
	if !ok || !e.member.Proven() {
		return nil, false
	}
	return e.member, true
}

// Len returns how many members are connected.
func (r *Registry) Len() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.members)
}

// Answered reports whether the member of a cluster has proved itself within a time, by a check
// that began no earlier than asked, and since when nothing has cast doubt on that. If it has
// not, somebody looks at once. Known is false for one that is not connected, or in doubt.
func (r *Registry) Answered(cluster string, asked time.Time, within time.Duration) (since time.Time, yes, known bool) {
	m, known := r.Get(cluster)
	if !known {
		return time.Time{}, false, false
	}
	if last := m.answered.Load(); last != nil && m.clock.Since(last.at) <= within && !last.at.Before(asked) {
		return last.since, true, true
	}
	alert(m)
	return time.Time{}, false, true
}

// Reinterpret reads status and health again of all objects whose kinds are
// affected by a change of the interpreter's rules. What was known stays until
// the new answers are there, nothing is written, and Synced is called for each such
// kind.
func (r *Registry) Reinterpret(affects func(schema.GroupVersionKind) bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, e := range r.members {
		e.member.informer.Reinterpret(affects)
	}
}

// targetPrint identifies a target: its address, how it is
// reached, and its credentials. It is derived from secrets: it is compared, and never shown.
type targetPrint struct{ place, way, credentials string }

func printOf(t Target) targetPrint {
	c := t.Config
	sum := func(parts ...string) string {
		hash := sha256.New()
		_, _ = fmt.Fprintf(hash, "%q", parts)
		return string(hash.Sum(nil))
	}
	return targetPrint{
		place:       sum(t.ID, c.Host, c.APIPath),
		way:         sum(t.Route, strconv.FormatBool(c.Insecure), c.ServerName, c.CAFile, string(c.CAData)),
		credentials: sum(c.BearerToken, c.BearerTokenFile, c.Username, c.Password, c.CertFile, c.KeyFile, string(c.CertData), string(c.KeyData)),
	}
}

// handlers passes events to several handlers.
type handlers []Handler

func (hs handlers) Proven(cluster string) {
	for _, h := range hs {
		h.Proven(cluster)
	}
}

func (hs handlers) Changed(cluster string, observed *Observed) {
	for _, h := range hs {
		h.Changed(cluster, observed)
	}
}

func (hs handlers) Synced(cluster string, gvk schema.GroupVersionKind) {
	for _, h := range hs {
		h.Synced(cluster, gvk)
	}
}

func (hs handlers) KindsChanged(cluster string) {
	for _, h := range hs {
		h.KindsChanged(cluster)
	}
}
