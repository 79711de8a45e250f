package scheduler

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
)

const (
	// slowest is the time between two evictions if the rate is negative, which all but switches them off.
	slowest = 30 * time.Minute
	// pollPeriod is the shortest time between two counts of the outcomes of moves.
	pollPeriod = time.Second
)

// rateLimiter spreads evictions over time, so that neither the clusters that take over nor their API servers get
// too much at once. It slows down while what was moved does not become healthy. It is a queue with
// numbers, and no token bucket, as a turn once given is kept while the rate changes. Use newRateLimiter.
type rateLimiter struct {
	clock clock.PassiveClock
	// set is the configured rate per second; see Options.
	set float64
	// outcomes counts the outcomes of the last moves. wake enqueues bindings whose turn comes earlier than wait
	// has returned.
	outcomes func(ctx context.Context) failover.Outcomes
	wake     func([]reconcile.Request)

	mu       sync.Mutex
	polled   time.Time
	seen     failover.Outcomes
	line     line
	turns    map[reconcile.Request]turn
	reported map[string]bool // the clusters for which an event has reported the lower rate
}

// turn is a binding's place in the line.
type turn struct {
	number float64
	// leaves are the clusters from which the binding is evicted, and kind is that of its template.
	leaves []string
	kind   string
}

// newRateLimiter returns a limiter for so many evictions per second; see Options.EvictionRate for zero and less.
func newRateLimiter(perSecond float64, c clock.PassiveClock) *rateLimiter {
	p := &rateLimiter{
		clock: c, set: perSecond, turns: map[reconcile.Request]turn{}, reported: map[string]bool{},
		outcomes: func(context.Context) failover.Outcomes { return failover.Outcomes{} },
		wake:     func([]reconcile.Request) {},
	}
	p.line = line{rate: perSecond, at: c.Now(), last: -1}
	if perSecond < 0 {
		p.line.rate, p.line.last = 1/slowest.Seconds(), 0 // even the first one waits
	}
	return p
}

// wait returns how long a decision has to wait for its turn, zero if it evicts nothing. A binding keeps its place in
// the line: if it asks again before its turn, it gets no later one.
func (p *rateLimiter) wait(ctx context.Context, req reconcile.Request, kind string, decision placement.Decision) time.Duration {
	if len(decision.Evicts) == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	p.adapt(ctx, now)
	if p.line.rate == 0 {
		return 0
	}
	t, given := p.turns[req]
	if !given {
		t.number = p.line.join(now)
	}
	t.leaves, t.kind = decision.Evicts, kind
	p.turns[req] = t
	if in := p.line.until(t.number, now); in > 0 {
		return in
	}
	delete(p.turns, req)
	return 0
}

// adapt sets the rate by the outcomes of the last moves. If the rate rises, bindings that wait are enqueued to ask
// for their new times.
func (p *rateLimiter) adapt(ctx context.Context, now time.Time) {
	if p.set < 0 || now.Sub(p.polled) < pollPeriod {
		return
	}
	p.polled, p.seen = now, p.outcomes(ctx)
	rate, was := p.seen.Rate(p.set), p.line.rate
	if rate == was {
		return
	}
	p.line.change(rate, now)
	p.reported = map[string]bool{}
	if rate != 0 && (was == 0 || rate < was) {
		return
	}
	waiting := slices.Collect(maps.Keys(p.turns))
	if rate == 0 {
		p.turns = map[reconcile.Request]turn{}
	}
	p.wake(waiting)
}

// slowed returns a text with the rate in force and its reason; empty if it is the configured one.
func (p *rateLimiter) slowed() string {
	if p.line.rate == p.set || p.set < 0 {
		return ""
	}
	such := ""
	if p.seen.Such != "" {
		such = ", such as " + p.seen.Such
	}
	return fmt.Sprintf("%d of %d templates that were moved off clusters last are not healthy where they were moved to%s: no more than %.3g in a second are moved until they are, instead of %s",
		p.seen.Ill, p.seen.Ill+p.seen.Healthy, such, p.line.rate, p.asSet())
}

// slowly returns the clusters that templates wait to leave while the rate is below the configured one, the rate, and
// the text of slowed. why is empty, and clusters nil, if the rate is the configured one.
func (p *rateLimiter) slowly(ctx context.Context) (clusters map[string]bool, rate float64, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.adapt(ctx, p.clock.Now())
	if why = p.slowed(); why == "" {
		return nil, p.line.rate, ""
	}
	clusters = map[string]bool{}
	for _, t := range p.turns {
		for _, name := range t.leaves {
			clusters[name] = true
		}
	}
	return clusters, p.line.rate, why
}

func (p *rateLimiter) asSet() string {
	if p.set == 0 {
		return "as many as there are"
	}
	return fmt.Sprintf("%.3g", p.set)
}

// unreported returns those of the clusters for which the lower rate was not reported yet, and the text of slowed. They
// count as reported from then on.
func (p *rateLimiter) unreported(clusters []string) (fresh []string, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if why = p.slowed(); why == "" {
		return nil, ""
	}
	for _, name := range clusters {
		if !p.reported[name] {
			p.reported[name] = true
			fresh = append(fresh, name)
		}
	}
	return fresh, why
}

// now returns the rate in force, zero for no limit, and the outcomes of the last moves.
func (p *rateLimiter) now(ctx context.Context) (float64, failover.Outcomes) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.adapt(ctx, p.clock.Now())
	return p.line.rate, p.seen
}

// depth returns how many bindings wait for their turn.
func (p *rateLimiter) depth() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.turns)
}

// kinds returns how many bindings wait to leave each cluster, by kind.
func (p *rateLimiter) kinds() map[clusterKind]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[clusterKind]int{}
	for _, t := range p.turns {
		for _, name := range t.leaves {
			out[clusterKind{name, t.kind}]++
		}
	}
	return out
}

// forget drops the turn of a binding.
func (p *rateLimiter) forget(req reconcile.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.turns, req)
}

// line is a queue in which each waits for its number. The numbers come up at a rate that may change. A rate of zero
// means that there is no queue.
type line struct {
	// rate is how many numbers come up per second.
	rate float64
	// passed is how many numbers had come up by the time at, whether or not they were given.
	passed float64
	at     time.Time
	// last is the number that was given last.
	last float64
}

// nearly is the tolerance for a number to have come up, as times are rounded.
const nearly = 1e-4

// advance brings passed up to now.
func (l *line) advance(now time.Time) {
	if now.After(l.at) {
		l.passed, l.at = l.passed+l.rate*now.Sub(l.at).Seconds(), now
	}
}

// join returns the next number.
func (l *line) join(now time.Time) float64 {
	l.advance(now)
	l.last = max(l.last+1, l.passed)
	return l.last
}

// until returns how long it takes for a number to come up; zero if it has.
func (l *line) until(number float64, now time.Time) time.Duration {
	l.advance(now)
	if number-l.passed < nearly {
		return 0
	}
	return time.Duration(math.Ceil((number-l.passed)/l.rate*1e6-nearly)) * time.Microsecond
}

// change sets another rate from now on. If there was no line, its first number has come up at once.
func (l *line) change(rate float64, now time.Time) {
	l.advance(now)
	if l.rate == 0 {
		l.last = l.passed - 1
	}
	l.rate = rate
}
