package cluster

import (
	"time"

	"github.com/flotilla-io/flotilla/internal/members"
)

const (
	// present is how long ago a cluster that counts as there may have been heard of. An
	// agent is heard every 10 s: who asks as often as that hears of it.
	present = 2 * time.Second
	// askAgain is how soon to ask again for a member that is looked at, and later for one
	// that did not answer the last time, or that has an agent.
	askAgain = 300 * time.Millisecond
	later    = time.Second
)

// Presence knows which clusters are there.
type Presence struct {
	registry *members.Registry
	pulses   *pulses
}

// Answers reports whether a cluster is there, as it was heard of since somebody asked, and not
// as its status says: that waits for a while before it says that one is gone. Since is when
// it was last back: out of reach before, or with an agent that has started. Where it is not
// known, the member is looked at, and again says when to ask again.
func (p Presence) Answers(cluster string, asked time.Time) (since time.Time, yes bool, again time.Duration) {
	since, yes, pushed := p.registry.Answered(cluster, asked, present)
	switch {
	case yes:
		return since, true, 0
	case pushed:
		return time.Time{}, false, askAgain
	}
	if since, yes = p.pulses.within(cluster, asked, present); yes {
		return since, true, 0
	}
	return time.Time{}, false, later
}

// within reports whether a cluster in pull mode was heard of in the last while and since
// somebody asked, agent and member, and since when without a break.
func (p *pulses) within(cluster string, asked time.Time, while time.Duration) (since time.Time, yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	is, known := p.of[cluster]
	return is.since, known && !is.silent && p.clock.Since(is.at) <= while && !is.at.Before(asked)
}
