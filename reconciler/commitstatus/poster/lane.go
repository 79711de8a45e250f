package poster

import (
	"sync"
	"time"
)

// lanes hold one lane per namespace and forge: what one tenant gets from a forge,
// such as a limit, or a fault of its own making, is no word on how others fare.
type lanes struct {
	first, last time.Duration

	mu      sync.Mutex
	byRoute map[route]*lane
}

// route is whose posts go where.
type route struct{ namespace, host string }

// lane is how posts of one namespace to one forge go.
type lane struct {
	busy   bool
	faults int
	opens  time.Time
}

// retryBusy is when to try again while another post on the lane is under way.
const retryBusy = 100 * time.Millisecond

func newLanes(first, last time.Duration) *lanes {
	return &lanes{first: first, last: last, byRoute: map[route]*lane{}}
}

func (l *lanes) of(to route) *lane {
	if l.byRoute[to] == nil {
		l.byRoute[to] = &lane{}
	}
	return l.byRoute[to]
}

// enter takes a lane. It returns how long to stay away instead if the lane is taken
// or closed, and until when it is closed. Whoever entered must leave.
func (l *lanes) enter(to route, now time.Time) (wait time.Duration, closed time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.of(to)
	switch {
	case now.Before(own.opens):
		return own.opens.Sub(now), own.opens
	case own.busy:
		return retryBusy, time.Time{}
	}
	own.busy = true
	return 0, time.Time{}
}

// leave gives the lane back. One without faults need not be remembered.
func (l *lanes) leave(to route) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byRoute[to].busy = false
	if l.byRoute[to].faults == 0 {
		delete(l.byRoute, to)
	}
}

// works records that the forge answered.
func (l *lanes) works(to route) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.of(to)
	own.faults, own.opens = 0, time.Time{}
}

// fails records a fault of the forge and returns how long its lane is closed:
// as long as the forge asks, else twice as long with each fault in a row.
func (l *lanes) fails(to route, now time.Time, asked time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.of(to)
	pause := min(l.first<<min(own.faults, 20), l.last)
	own.faults++
	pause = max(pause, asked)
	own.opens = now.Add(pause)
	return pause
}
