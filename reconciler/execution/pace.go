package execution

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Corrections of one Work's objects are made at once for freeCorrections times;
// after that each waits twice as long as the one before, up to lastRetry. A
// quiet time of forgiven starts over.
const (
	freeCorrections = 3
	firstPause      = time.Second
	forgiven        = 10 * time.Minute
)

// pace slows the correction of objects down that somebody keeps changing, so
// that two who disagree do not keep a member busy.
type pace struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	runs map[client.ObjectKey]run
}

type run struct {
	count int
	last  time.Time
	told  time.Time
}

func newPace(c clock.PassiveClock) *pace {
	return &pace{clock: c, runs: map[client.ObjectKey]run{}}
}

// due returns how long the next correction has to wait.
func (p *pace) due(key client.ObjectKey) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.runs[key]
	since := p.clock.Since(r.last)
	if !ok || r.count < freeCorrections || since > forgiven {
		return 0
	}
	pause := lastRetry
	if n := r.count - freeCorrections; n < 9 {
		pause = min(lastRetry, firstPause<<n)
	}
	return max(0, pause-since)
}

// ran counts a correction.
func (p *pace) ran(key client.ObjectKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.runs[key]
	if p.clock.Since(r.last) > forgiven {
		r.count = 0
	}
	r.count, r.last = r.count+1, p.clock.Now()
	p.runs[key] = r
}

// tells says whether an Event is due: the last one is a while ago.
func (p *pace) tells(key client.ObjectKey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.runs[key]
	if !r.told.IsZero() && p.clock.Since(r.told) <= forgiven {
		return false
	}
	r.told = p.clock.Now()
	p.runs[key] = r
	return true
}

func (p *pace) forget(key client.ObjectKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.runs, key)
}
