// Package silence decides for how long nothing has to be heard of a cluster until that counts.
//
// In go what was decided at the last look at a cluster, since when it is silent, and the time; out come what is decided
// now, and when to look again. It reads no clusters: since when one is silent is for the caller to say.
package silence

import "time"

const (
	// calm is how long after it was reported as silent a cluster is taken for one that does not come and go.
	calm = 10 * time.Minute
	// firstPause and lastPause are how long at least, and at most, one that was reported as silent is not reported again.
	firstPause = 30 * time.Second
	lastPause  = 5 * time.Minute
)

// Cluster is what was decided about a cluster. The zero value is one that is heard of.
type Cluster struct {
	// Silent says that what the cluster reported last does not count. One that is heard of is never Silent.
	Silent bool
	// Since is since when nothing is heard of it; zero if it is heard of. It may be silent without being Silent yet.
	Since time.Time
	// Turns is how often what loops made of it had to be looked at anew: Silent changed, or would have but for a pause.
	Turns int

	missed bool          // it was silent for long enough, and never Silent for that
	paused time.Time     // when the last pause began
	pause  time.Duration // how long it is
}

// Ends reports whether next, a look after this one, is the first that hears of a cluster again without a turn: it is in a pause, or
// the silence was too short to count. Whoever looked meanwhile may have seen it, and need not wait for the end of the pause.
func (c Cluster) Ends(next Cluster) bool {
	return !c.Since.IsZero() && next.Since.IsZero() && c.Turns == next.Turns
}

// Observe returns what is decided about a cluster at a time: it is Silent once nothing was heard of it for the duration
// after, and no more as soon as it is heard of. One that comes and goes becomes Silent less and less often; whoever looked
// meanwhile may have seen it as it was, and so looks again after the pause. Since is zero for a cluster that is heard of.
// Again is when to look again although nothing happens; 0 for never.
func (c Cluster) Observe(since time.Time, after time.Duration, now time.Time) (next Cluster, again time.Duration) {
	next = c
	if next.Since = since; !since.IsZero() && !c.Since.IsZero() && c.Since.Before(since) {
		next.Since = c.Since // the same silence, for another reason
	}
	is, due := !next.Since.IsZero(), now
	switch {
	case c.Silent && !is:
		next.Silent, next.Turns = false, c.Turns+1
		return next, 0
	case c.Silent:
		return next, 0
	case is:
		due = next.Since.Add(after)
	case c.missed, !c.Since.IsZero() && !c.Since.Add(after).After(now):
		next.missed = true
	default:
		return next, 0
	}
	recent := !c.paused.IsZero() && now.Sub(c.paused) < calm
	if until := c.paused.Add(c.pause); recent && until.After(due) {
		due = until
	}
	if due.After(now) {
		return next, due.Sub(now)
	}
	next.Silent, next.Turns, next.missed, next.paused, next.pause = is, c.Turns+1, false, now, firstPause
	if recent {
		next.pause = min(2*c.pause, lastPause)
	}
	return next, 0
}
