package poster

import (
	"sync"
	"time"
)

// lanes hold one lane per forge.
type lanes struct {
	first, last time.Duration

	mu     sync.Mutex
	byHost map[string]*lane
}

// lane is how posts to one forge go.
type lane struct {
	busy   bool
	faults int
	opens  time.Time
}

// retryBusy is when to try again while another post to the forge is under way.
const retryBusy = 100 * time.Millisecond

func newLanes(first, last time.Duration) *lanes {
	return &lanes{first: first, last: last, byHost: map[string]*lane{}}
}

// enter takes the lane of a forge. It returns how long to stay away instead if
// the lane is taken or closed. Whoever entered must leave.
func (l *lanes) enter(host string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byHost[host] == nil {
		l.byHost[host] = &lane{}
	}
	own := l.byHost[host]
	switch {
	case now.Before(own.opens):
		return own.opens.Sub(now)
	case own.busy:
		return retryBusy
	}
	own.busy = true
	return 0
}

// leave gives the lane back.
func (l *lanes) leave(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byHost[host].busy = false
}

// works records that the forge answered.
func (l *lanes) works(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byHost[host].faults, l.byHost[host].opens = 0, time.Time{}
}

// fails records a fault of the forge and returns how long its lane is closed:
// as long as the forge asks, else twice as long with each fault in a row.
func (l *lanes) fails(host string, now time.Time, asked time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.byHost[host]
	pause := min(l.first<<min(own.faults, 20), l.last)
	own.faults++
	pause = max(pause, asked)
	own.opens = now.Add(pause)
	return pause
}
