package places

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/loop"
)

// Options bound what tenants do. Zero fields take the default.
type Options struct {
	// Alone is how many places a tenant has while no other has runs. Default 32.
	Alone int
	// Shared is how many it has while others do, and for computing always: default
	// half of the processors, at least 1.
	Shared int
	// Burst is for how long a tenant has the places that it shares before it has them
	// for half of the time only, while others have runs. Default 2 s.
	Burst time.Duration
	// Clock is the real one if nil.
	Clock clock.Clock
}

const (
	defaultAlone = 32
	defaultBurst = 2 * time.Second
)

// linger is how long a tenant counts as one that has runs after its last one: the
// next loop takes up what one has done.
const linger = time.Second

// Places are those of one process. Use New.
type Places struct {
	opts Options

	mu      sync.Mutex
	tenants map[string]*tenant
}

// tenant is one that has runs, or had some a moment ago.
type tenant struct {
	runs    int
	ended   time.Time // when the last run did
	taken   taken
	waiting []*waiter // for places, the first first
	spent   spent
}

// taken are places by what is done there.
type taken struct{ computing, requests int }

// of returns the count of one kind.
func (t *taken) of(computes bool) *int {
	if computes {
		return &t.computing
	}
	return &t.requests
}

// waiter is somebody who asked for a place.
type waiter struct {
	computes bool
	turn     chan struct{} // closed when it has the place
}

// New returns places, none of them taken.
func New(opts Options) *Places {
	if opts.Alone <= 0 {
		opts.Alone = defaultAlone
	}
	if opts.Shared <= 0 {
		opts.Shared = max(runtime.GOMAXPROCS(0)/2, 1)
	}
	if opts.Burst <= 0 {
		opts.Burst = defaultBurst
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	return &Places{opts: opts, tenants: map[string]*tenant{}}
}

// run is what a context knows of the run that it belongs to.
type run struct {
	places *Places
	tenant string
	// since is when the context got a place, nil if it has none; computes says that
	// it is one to compute in.
	since    *time.Time
	computes bool
}

type runKey struct{}

// Start begins a run of a tenant, and returns its context. The caller calls end once.
func (p *Places) Start(ctx context.Context, of string) (_ context.Context, end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.opts.Clock.Now()
	for name, t := range p.tenants {
		if t.spent.forgive(now, p.opts); !t.present(now) && t.taken == (taken{}) && len(t.waiting) == 0 && t.spent.much == 0 {
			delete(p.tenants, name)
		}
	}
	t := p.tenants[of]
	if t == nil {
		t = &tenant{}
		p.tenants[of] = t
	}
	t.runs++
	return context.WithValue(ctx, runKey{}, run{places: p, tenant: of}), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		t.runs--
		t.ended = p.opts.Clock.Now()
	}
}

// present reports whether the tenant has runs, or had some a moment ago.
func (t *tenant) present(now time.Time) bool {
	return t.runs > 0 || now.Sub(t.ended) < linger
}

// Phase makes a phase wait for a place to compute in, as Compute does.
func Phase[S any](phase loop.Phase[S]) loop.Phase[S] {
	return func(ctx context.Context, s *S) (loop.Next, error) {
		ctx, leave, err := Compute(ctx)
		if err != nil {
			return loop.Next{}, err
		}
		defer leave()
		return phase(ctx, s)
	}
}

// Compute waits for a place to compute in; there are few. The context that it
// returns has the place: who asks for another one with it goes on in this one. The
// caller calls leave once. It errs if the context ends first. Whoever computes for long
// asks the context now and then whether to go on: then others have their turn.
func Compute(ctx context.Context) (_ context.Context, leave func(), err error) {
	return enter(ctx, true)
}

// Request waits for a place to send a request from, as Compute does.
func Request(ctx context.Context) (_ context.Context, leave func(), err error) {
	return enter(ctx, false)
}

func enter(ctx context.Context, computes bool) (context.Context, func(), error) {
	r, runs := ctx.Value(runKey{}).(run)
	if !runs || r.since != nil {
		return ctx, func() {}, nil
	}
	if err := r.places.take(ctx, r.tenant, computes); err != nil {
		return nil, nil, err
	}
	since := r.places.opts.Clock.Now()
	r.since, r.computes = &since, computes
	return context.WithValue(yielding{ctx}, runKey{}, r), func() { r.places.leave(r.tenant, computes, *r.since) }, nil
}

// yielding lets others run when somebody asks it whether to go on. Go interrupts who
// computes after 10 ms, and a change passes through many hands: with all processors taken,
// it would wait for that at each of them.
type yielding struct{ context.Context }

// Err implements context.Context.
func (y yielding) Err() error {
	runtime.Gosched()
	return y.Context.Err()
}

// Outside calls fn without the place that the context has, for what waits and does
// not compute here. It waits for a place of the same kind before it returns.
func Outside(ctx context.Context, fn func(ctx context.Context)) {
	r, _ := ctx.Value(runKey{}).(run)
	since := r.since
	if since == nil {
		fn(ctx)
		return
	}
	r.since = nil
	r.places.leave(r.tenant, r.computes, *since)
	fn(context.WithValue(ctx, runKey{}, r))
	// Whoever leaves the place later has it, even if nobody works in it any more.
	_ = r.places.take(context.WithoutCancel(ctx), r.tenant, r.computes)
	*since = r.places.opts.Clock.Now()
}

func (p *Places) take(ctx context.Context, of string, computes bool) error {
	p.mu.Lock()
	t := p.tenants[of]
	w := &waiter{computes: computes, turn: make(chan struct{})}
	t.waiting = append(t.waiting, w)
	p.admit(t)
	p.mu.Unlock()
	select {
	case <-w.turn:
		return nil
	default:
	}
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := len(t.waiting)
	t.waiting = slices.DeleteFunc(t.waiting, func(other *waiter) bool { return other == w })
	if len(t.waiting) == waiting { // it has had its turn meanwhile
		*t.taken.of(computes)--
	}
	p.admit(t)
	return context.Cause(ctx)
}

func (p *Places) leave(of string, computes bool, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tenants[of]
	*t.taken.of(computes)--
	now := p.opts.Clock.Now()
	t.spent.add(now.Sub(since), now, p.opts)
	p.admit(t)
}

// admit gives places to those who wait, as far as there are any: in the order in
// which they came, but for one who is alone requests do not wait for what is computed.
// One who has had much while others have runs waits.
func (p *Places) admit(t *tenant) {
	alone := p.alone(t)
	if rest := t.spent.rest(p.opts.Clock.Now(), p.opts); rest > 0 && !alone {
		p.wake(t, rest)
		return
	}
	t.waiting = slices.DeleteFunc(t.waiting, func(w *waiter) bool {
		free := t.taken.computing+t.taken.requests < p.opts.Shared
		switch {
		case alone && w.computes:
			free = t.taken.computing < p.opts.Shared
		case alone:
			free = t.taken.requests < p.opts.Alone
		}
		if free {
			*t.taken.of(w.computes)++
			close(w.turn)
		}
		return free
	})
}

// wake has those who wait looked at again, if there are any.
func (p *Places) wake(t *tenant, after time.Duration) {
	if len(t.waiting) == 0 || t.spent.waits {
		return
	}
	t.spent.waits = true
	timer := p.opts.Clock.NewTimer(after)
	go func() {
		<-timer.C()
		p.mu.Lock()
		defer p.mu.Unlock()
		t.spent.waits = false
		p.admit(t)
	}()
}

// alone reports whether no other tenant has runs.
func (p *Places) alone(t *tenant) bool {
	now := p.opts.Clock.Now()
	for _, other := range p.tenants {
		if other != t && other.present(now) {
			return false
		}
	}
	return true
}
