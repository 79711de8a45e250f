package informer

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/taskgroup"
)

// Options name the member that is watched, and the callbacks. All are required.
type Options struct {
	// Client reads the member's objects, Discovery its kinds.
	Client    dynamic.Interface
	Discovery rest.Interface
	// Interpreter reads status and health from the objects.
	Interpreter Interpreter
	// Clock is the time.
	Clock clock.WithTicker
	// Changed is called when a managed object was made, changed or removed, Synced
	// that reads of a kind that were unknown so far are known now. They must not
	// block.
	Changed func(*Observed)
	Synced  func(schema.GroupVersionKind)
}

// Informer is what is seen of one member's objects.
type Informer struct {
	options Options
	tasks   *taskgroup.Group
	kinds   *catalogue
	recheck *recheckQueue

	mu      sync.Mutex
	watches map[schema.GroupVersionKind]*kindWatch
}

// New returns a view that watches nothing yet. It sends nothing.
func New(o Options) *Informer {
	v := &Informer{
		options: o, tasks: taskgroup.New(), kinds: newCatalogue(o.Discovery), recheck: newRecheckQueue(o.Interpreter, o.Clock),
		watches: map[schema.GroupVersionKind]*kindWatch{},
	}
	v.tasks.Go(v.recheck.run)
	return v
}

// Run keeps the watches going until ctx ends.
func (v *Informer) Run(ctx context.Context) { v.tasks.Run(ctx) }

// Read returns what the watch of a kind has seen of one object, and starts that
// watch where there is none.
func (v *Informer) Read(gvk schema.GroupVersionKind, key types.NamespacedName) (*Observed, Presence) {
	return v.watch(gvk).read(key)
}

// Each calls yield for the managed objects of all kinds whose watch has seen the
// whole list and is up to date. It asks nothing of the member.
func (v *Informer) Each(yield func(schema.GroupVersionKind, *Observed)) {
	for _, w := range v.all() {
		each(w, yield)
	}
}

// Blind returns the kinds that could not be read for at least a time, in the order of their
// names, and why: what is known of their objects is of before.
func (v *Informer) Blind(least time.Duration) []Blind {
	var out []Blind
	for _, w := range v.all() {
		if err := blind(w, least); err != nil {
			out = append(out, Blind{Kind: w.gvk, Why: why(err)})
		}
	}
	slices.SortFunc(out, func(a, b Blind) int { return strings.Compare(a.Kind.String(), b.Kind.String()) })
	return out
}

// Lookup returns how the member serves a kind. An error that meta.IsNoMatchError
// knows says that it does not.
func (v *Informer) Lookup(ctx context.Context, gvk schema.GroupVersionKind) (Kind, error) {
	return v.kinds.lookup(ctx, gvk)
}

// Forget drops how the member serves a kind, which turned out not to be so any more.
func (v *Informer) Forget(gvk schema.GroupVersionKind) { v.kinds.forget(gvk) }

// Wrote takes in what the member answered a write of ours with, until the watch
// shows it, and returns what is kept of it.
func (v *Informer) Wrote(gvk schema.GroupVersionKind, answer *unstructured.Unstructured) (*Observed, error) {
	observed, err := trim(answer, v.options.Interpreter)
	if err != nil {
		return nil, err
	}
	w := v.watch(gvk)
	w.note(observed)
	if observed.Pending {
		v.recheck.replace(w, answer)
		v.recheck.ask(w, observed.key(), observed.after)
	}
	return observed, nil
}

// Undid forgets a write of ours that a later one has undone.
func (v *Informer) Undid(gvk schema.GroupVersionKind, key types.NamespacedName) {
	v.watch(gvk).drop(key)
}

// Retry has watches that broke start over at once.
func (v *Informer) Retry() {
	for _, w := range v.all() {
		signal(w.retry)
	}
}

// KindsChanged reports that the member may serve other kinds than before.
func (v *Informer) KindsChanged() {
	v.kinds.reset()
	v.Retry()
}

// Reinterpret reads status and health again of all objects whose kinds are
// affected by a change of the interpreter's rules. What was known stays until the
// new answers are there, and Synced is called for each such kind.
func (v *Informer) Reinterpret(affects func(schema.GroupVersionKind) bool) {
	for _, w := range v.all() {
		if affects(w.gvk) {
			signal(w.anew)
		}
	}
}

// Reread has all objects read anew. Watches of a member that was set back may wait for
// what it has yet to reach, or have missed that it lost something.
func (v *Informer) Reread() { v.Reinterpret(func(schema.GroupVersionKind) bool { return true }) }

func (v *Informer) all() []*kindWatch {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Values(v.watches))
}

// Succeed has v watch what another view has watched, which ends: what is gone since is
// reported. It is called before v is used.
func (v *Informer) Succeed(other *Informer) {
	for _, w := range other.all() {
		v.watchAfter(w.gvk, seen(w))
	}
}

func (v *Informer) watch(gvk schema.GroupVersionKind) *kindWatch { return v.watchAfter(gvk, nil) }

// watchAfter returns the watch of a kind; one that is begun goes on from what was seen
// before.
func (v *Informer) watchAfter(gvk schema.GroupVersionKind, before []any) *kindWatch {
	v.mu.Lock()
	defer v.mu.Unlock()
	if w, ok := v.watches[gvk]; ok {
		return w
	}
	w := &kindWatch{
		gvk:         gvk,
		served:      served{lookup: v.kinds.lookup, forget: v.kinds.forget},
		client:      v.options.Client,
		interpreter: v.options.Interpreter,
		clock:       v.options.Clock,
		changed:     v.options.Changed,
		synced:      v.options.Synced,
		retry:       make(chan struct{}, 1),
		anew:        make(chan struct{}, 1),
		recheck:     v.recheck,
		last:        before,
		wrote:       map[types.NamespacedName]write{},
		late:        map[types.NamespacedName]*Observed{},
	}
	v.watches[gvk] = w
	v.tasks.Go(w.run)
	return w
}
