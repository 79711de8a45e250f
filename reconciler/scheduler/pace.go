package scheduler

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/policies/placement"
)

// slowest is how far apart evictions are where they are all but switched off.
const slowest = 30 * time.Minute

// pace spreads evictions over time: clusters that get much at once, and members that are asked
// for much at once, do no better for it. Use newPace.
type pace struct {
	clock   clock.PassiveClock
	limiter *rate.Limiter // nil: there is no limit

	mu    *sync.Mutex
	turns map[reconcile.Request]time.Time
}

// newPace returns a pace of so many evictions in a second; see Options.
func newPace(perSecond float64, c clock.PassiveClock) pace {
	p := pace{clock: c, mu: &sync.Mutex{}, turns: map[reconcile.Request]time.Time{}}
	switch {
	case perSecond > 0:
		p.limiter = rate.NewLimiter(rate.Limit(perSecond), 1)
	case perSecond < 0:
		p.limiter = rate.NewLimiter(rate.Every(slowest), 1)
		p.limiter.AllowN(c.Now(), 1) // the first one waits, too
	}
	return p
}

// wait returns how long the decision has to wait for its turn. What evicts nothing has none.
// A turn that is given stays given: who asks again before it comes gets no later one.
func (p pace) wait(req reconcile.Request, decision placement.Decision) time.Duration {
	if p.limiter == nil || len(decision.Evicts) == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	turn, given := p.turns[req]
	if !given {
		turn = now.Add(p.limiter.ReserveN(now, 1).DelayFrom(now))
		p.turns[req] = turn
	}
	if turn.After(now) {
		return turn.Sub(now)
	}
	delete(p.turns, req)
	return 0
}

// forget gives the turn of a binding up.
func (p pace) forget(req reconcile.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.turns, req)
}
