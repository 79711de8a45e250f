package webhook

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// Options tune the layer. The zero value is what production uses, but for
// Resolve.
type Options struct {
	// Resolve finds the Services that webhooks name; nil finds none.
	Resolve Resolver
	// PerHook is how many calls one webhook is sent at the same time; zero means 8.
	PerHook int
	// Calls is how many calls are sent at the same time in all; zero means 64. A
	// webhook without any may always be sent one: those that hang never take the
	// last place.
	Calls int
	// Entries and Bytes are how many answers are kept; zero means 16,384 and 64 MiB.
	Entries int
	Bytes   int64
	// Queue and QueueBytes are how many questions may wait for one webhook; zero
	// means 4,096 and 16 MiB. Those beyond are taken when they are asked again.
	Queue      int
	QueueBytes int64
	// Called is called with the outcome of each call; nil is not called.
	Called func(Call)
	// Clock is the real one if nil.
	Clock clock.PassiveClock
}

// Call is a call that came to its end.
type Call struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
	Operation       configv1alpha1.InterpreterOperation
	Took            time.Duration
	// Err is nil if there is an answer.
	Err error
}

func (o Options) withDefaults() Options {
	def := func(v *int, most int) {
		if *v == 0 {
			*v = most
		}
	}
	def(&o.PerHook, 8)
	def(&o.Calls, 64)
	def(&o.Entries, 16<<10)
	def(&o.Queue, 4<<10)
	if o.Bytes == 0 {
		o.Bytes = 64 << 20
	}
	if o.QueueBytes == 0 {
		o.QueueBytes = 16 << 20
	}
	if o.Called == nil {
		o.Called = func(Call) {}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// Webhooks is the layer. Use New. Nothing is sent until Start runs.
type Webhooks struct {
	opts      Options
	current   atomic.Pointer[set]
	responses *responseCache
}

var _ kinds.Layer = (*Webhooks)(nil)

// New returns a layer that knows no webhook.
func New(o Options) *Webhooks {
	o = o.withDefaults()
	w := &Webhooks{opts: o, responses: newResponseCache(o)}
	w.current.Store(&set{})
	return w
}

// Resolve has Services found by r, unless the options say by whom. It is called
// before Use.
func (w *Webhooks) Resolve(r Resolver) {
	if w.opts.Resolve == nil {
		w.opts.Resolve = r
	}
}

// Use replaces the webhooks by those of the configurations, and says which kinds
// may be answered otherwise from now on: those that a webhook is asked about
// that came, went or was edited. What those had answered is forgotten. It must
// not be called twice at the same time.
func (w *Webhooks) Use(configurations []*configv1alpha1.ResourceInterpreterWebhookConfiguration) (affects func(schema.GroupVersionKind) bool, some bool) {
	before := w.current.Load()
	now := compile(configurations, before, w.opts)
	gone, come := before.without(now), now.without(before)
	if len(gone)+len(come) == 0 {
		return func(schema.GroupVersionKind) bool { return false }, false
	}
	w.current.Store(now)
	w.responses.forget(gone)
	changed := append(gone, come...)
	return func(gvk schema.GroupVersionKind) bool {
		for _, h := range changed {
			if h.concerns(gvk) {
				return true
			}
		}
		return false
	}, true
}

// Start sends what is asked until ctx ends.
func (w *Webhooks) Start(ctx context.Context) error {
	var calls sync.WaitGroup
	defer calls.Wait()
	for {
		for _, f := range w.responses.next(ctx) {
			calls.Go(func() { w.call(f) })
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.responses.wake:
		}
	}
}

// call sends one question.
func (w *Webhooks) call(f flight) {
	defer f.cancel()
	started := w.opts.Clock.Now()
	answer, size, err := func() (_ *response, _ int64, err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("its answer cannot be read: %s", short(fmt.Sprint(r)))
			}
		}()
		f.entry.sent.uid = types.UID(uuid.NewString())
		return f.entry.hook.post(f.ctx, f.entry.sent)
	}()
	r := f.entry.sent.request
	if !w.responses.record(f, answer, size, err) {
		return
	}
	w.opts.Called(Call{
		Kind:      schema.GroupVersionKind(r.Kind),
		Namespace: r.Namespace,
		Name:      r.Name,
		Operation: r.Operation,
		Took:      w.opts.Clock.Since(started),
		Err:       err,
	})
}

// ask returns what a hook has answered, or an error that says when to ask again.
func (w *Webhooks) ask(h *hook, q question) (*response, error) {
	s, k, err := write(h.id, q)
	if err != nil {
		return nil, err
	}
	return w.responses.ask(h, k, s)
}

// Fault is the error of a webhook that was asked in vain. The question is sent
// again, at the earliest, when it is asked after RetryAfter.
type Fault struct {
	// Hook is the name of the configuration and of the webhook.
	Hook string
	// After is how long it is left alone, from when the question was asked.
	After time.Duration
	Err   error
}

// Error says who failed, and how.
func (f *Fault) Error() string { return fmt.Sprintf("webhook %s: %v", f.Hook, f.Err) }

// Unwrap returns what went wrong.
func (f *Fault) Unwrap() error { return f.Err }

// RetryAfter returns when it makes sense to ask again.
func (f *Fault) RetryAfter() time.Duration { return f.After }
