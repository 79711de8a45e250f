package cluster

import (
	"time"

	"github.com/flotilla-io/flotilla/internal/members"
)

const (
	// present is how long ago the last sign of a cluster may be that counts as there. An
	// agent renews its Lease every 10 s.
	present = 2 * time.Second
	// askAgain is how soon to ask again for a member that is probed, and later for one
	// that did not answer the last time, or that has an agent.
	askAgain = 300 * time.Millisecond
	later    = time.Second
)

// Presence reports which clusters are reachable.
type Presence struct {
	registry   *members.Registry
	heartbeats *heartbeats
}

// Answers reports whether a cluster is reachable, by a sign of it since the question was asked, and not
// by its status, which shows with a delay that a cluster is lost. Since is when
// it was last back: out of reach before, or with an agent that has started. Where it is not
// known, the member is probed, and again is when to ask again.
func (p Presence) Answers(cluster string, asked time.Time) (since time.Time, yes bool, again time.Duration) {
	since, yes, pushed := p.registry.Answered(cluster, asked, present)
	switch {
	case yes:
		return since, true, 0
	case pushed:
		return time.Time{}, false, askAgain
	}
	if since, yes = p.heartbeats.within(cluster, asked, present); yes {
		return since, true, 0
	}
	return time.Time{}, false, later
}

// within reports whether a cluster in pull mode was heard of in the last while and since
// somebody asked, agent and member, and since when without a break.
func (p *heartbeats) within(cluster string, asked time.Time, while time.Duration) (since time.Time, yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	is, known := p.of[cluster]
	return is.since, known && !is.silent && p.clock.Since(is.at) <= while && !is.at.Before(asked)
}
