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
	// slowest is how far apart evictions are where they are all but switched off.
	slowest = 30 * time.Minute
	// pollPeriod is how often it is checked how what was moved fares.
	pollPeriod = time.Second
)

// rateLimiter spreads evictions over time: neither clusters that get much at once nor members that are
// asked for much at once do better for it. It slows down while what was moved does not get
// healthy. Use newRateLimiter.
type rateLimiter struct {
	clock clock.PassiveClock
	// set is the rate in a second; see Options.
	set float64
	// fares says how what was moved last fares; wake looks at bindings whose turn comes sooner than announced.
	fares func(ctx context.Context) failover.Outcomes
	wake  func([]reconcile.Request)

	mu       sync.Mutex
	polled   time.Time
	seen     failover.Outcomes
	line     line
	turns    map[reconcile.Request]turn
	reported map[string]bool // the clusters of which it was reported that they are left more slowly
}

// turn is a place in the line.
type turn struct {
	number float64
	// leaves are the clusters that are to be left, and kind is that of what leaves them.
	leaves []string
	kind   string
}

// newRateLimiter returns a limiter of so many evictions in a second; see Options.
func newRateLimiter(perSecond float64, c clock.PassiveClock) *rateLimiter {
	p := &rateLimiter{
		clock: c, set: perSecond, turns: map[reconcile.Request]turn{}, reported: map[string]bool{},
		fares: func(context.Context) failover.Outcomes { return failover.Outcomes{} },
		wake:  func([]reconcile.Request) {},
	}
	p.line = line{rate: perSecond, at: c.Now(), last: -1}
	if perSecond < 0 {
		p.line.rate, p.line.last = 1/slowest.Seconds(), 0 // the first one waits, too
	}
	return p
}

// wait returns how long the decision about something of a kind has to wait for its turn. What evicts nothing has none.
// A place in the line that is given stays given: who asks again before its turn gets no later one.
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

// adapt brings the rate to what is seen of what was moved. Those that wait come sooner if it rises.
func (p *rateLimiter) adapt(ctx context.Context, now time.Time) {
	if p.set < 0 || now.Sub(p.polled) < pollPeriod {
		return
	}
	p.polled, p.seen = now, p.fares(ctx)
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

// slowed is the rate in force, and what it is so for, in words; empty where it is as set.
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

// slowly are the clusters that templates wait to leave while the rate is not as set, that rate, and what it is so for, in words.
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

// unreported returns those clusters of which it was not reported yet that they are left more slowly, and why they are.
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

// now are the rate in force, zero for as many as there are, and how what was moved fares.
func (p *rateLimiter) now(ctx context.Context) (float64, failover.Outcomes) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.adapt(ctx, p.clock.Now())
	return p.line.rate, p.seen
}

// depth is how many wait for their turn.
func (p *rateLimiter) depth() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.turns)
}

// kinds are how many wait to leave each cluster, by kind.
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

// forget gives the turn of a binding up.
func (p *rateLimiter) forget(req reconcile.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.turns, req)
}

// line is one in which each waits for its number, however fast that goes. A rate of zero has no line.
type line struct {
	// rate is how many are let through in a second.
	rate float64
	// passed is how many could have been by at.
	passed float64
	at     time.Time
	// last is the number that was given last.
	last float64
}

// nearly is how much of its number may be missing for one whose turn it is: times are rounded.
const nearly = 1e-4

// advance counts what could have passed by now.
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

// until is how long it takes for a number to come up; zero: it has.
func (l *line) until(number float64, now time.Time) time.Duration {
	l.advance(now)
	if number-l.passed < nearly {
		return 0
	}
	return time.Duration(math.Ceil((number-l.passed)/l.rate*1e6-nearly)) * time.Microsecond
}

// change has the line go at another rate from now on. Where there was no line it begins at once.
func (l *line) change(rate float64, now time.Time) {
	l.advance(now)
	if l.rate == 0 {
		l.last = l.passed - 1
	}
	l.rate = rate
}
