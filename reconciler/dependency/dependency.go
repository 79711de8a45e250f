package dependency

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/dedup"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Templates are the objects of the control plane that may be propagated.
type Templates interface {
	// Get returns an object, and whether it is known to be there.
	Get(ctx context.Context, key templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error)
	// List calls yield for all of a kind and namespace that are known so far.
	List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, yield func(*unstructured.Unstructured)) error
	// State returns what is known about a kind.
	State(gvk schema.GroupVersionKind) templatestore.State
	// Want sets the kinds that owner needs.
	Want(owner any, kinds ...schema.GroupVersionKind)
	// Listen adds a listener before the store starts.
	Listen(l templatestore.Listener)
}

// Interpreter knows what a template refers to.
type Interpreter interface {
	// Dependencies returns the objects that obj needs to run; known is false for kinds
	// without a rule.
	Dependencies(obj *unstructured.Unstructured) (deps []kinds.Dependency, known bool, err error)
}

// Options tune the loops. The zero value is the default.
type Options struct {
	// Workers is how many bindings each of the two loops reconciles concurrently;
	// zero means 8.
	Workers int
	// Off propagates no dependencies, whatever policies say, and releases those of before.
	Off bool
	// Skip says what is never propagated, beyond what can never be.
	Skip propagation.SkipRules
	// Carried reports whether a policy carries obj or is about to: when its users
	// are gone, its binding then waits for that policy. Nil: none ever does.
	Carried func(ctx context.Context, obj *unstructured.Unstructured) bool
	// Clock is the real one if nil.
	Clock clock.PassiveClock
}

// behind is how long to wait for a cache that lags behind a binding.
const behind = 50 * time.Millisecond

// Reconciler propagates what templates refer to. Use New.
type Reconciler struct {
	hub         client.Client
	live        client.Reader
	templates   Templates
	interpreter Interpreter
	events      loop.Recorder
	opts        Options

	index   *reverseIndex
	written *writecache.Cache[workv1alpha2.Binding]
	reader  reader
	writer  userWriter
	// users and objects are the inboxes of the two loops.
	users    loop.Inbox[reconcile.Request]
	objects  loop.Inbox[templatestore.Key]
	failures dedup.Messages[any]
	handed   waiting
	newID    func() string
}

// New returns the loops. hub reads from a cache with the indexes of bindings, live
// from the control plane itself.
func New(hub client.Client, live client.Reader, templates Templates, interpreter Interpreter, events loop.Recorder, opts Options) *Reconciler {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Workers == 0 {
		opts.Workers = 8
	}
	written := writecache.New[workv1alpha2.Binding](opts.Clock)
	return &Reconciler{
		hub: hub, live: live, templates: templates, interpreter: interpreter, events: events, opts: opts,
		index:   newReverseIndex(),
		written: written,
		reader:  reader{hub, written},
		writer:  userWriter{hub, written},
		newID:   uuid.NewString,
	}
}

// Reconcile finds out what the template of one binding needs.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s := use{key: req.NamespacedName}
	next, err := loop.Run(ctx, &s, r.readUser, r.decideUser, r.writer.write)
	err = errors.Join(s.fault, err)
	r.reportUser(&s, err)
	return loop.Result(next, err)
}

// decideUser runs the phases that decide, each of which may skip the rest of them, but not the pass.
func (r *Reconciler) decideUser(ctx context.Context, s *use) (loop.Next, error) {
	next, err := loop.Run(ctx, s, r.leave, r.interpret, r.enter, note)
	next.Done = false
	return next, err
}

// attach is the loop that brings the bindings of dependencies up to date.
type attach struct{ *Reconciler }

// Reconcile brings the binding of one object up to date.
func (r attach) Reconcile(ctx context.Context, key templatestore.Key) (reconcile.Result, error) {
	s := attachment{key: key}
	next, err := loop.Run(ctx, &s, r.readObject, r.decide, r.write)
	r.reportUsers(ctx, &s, err)
	return loop.Result(next, err)
}
