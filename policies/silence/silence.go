// Package silence decides for how long nothing has to be heard of a cluster until that counts.
//
// In go what was decided at the last look at a cluster, since when it is silent, and the time; out come what is decided
// now, and when to look again. It reads no clusters: since when one is silent is for the caller to say.
package silence

import "time"

const (
	// calm is how long nothing turns until a cluster is taken for one that does not come and go.
	calm = 10 * time.Minute
	// firstPause and lastPause are the shortest and the longest pause between two turns of a cluster that comes and goes;
	// the first two turns have none between them.
	firstPause = 30 * time.Second
	lastPause  = 5 * time.Minute
)

// Cluster is what was decided about a cluster. The zero value is one that is heard of.
type Cluster struct {
	// Silent says that what the cluster reported last does not count.
	Silent bool
	// Since is since when nothing is heard of it; zero if it is heard of. It may be silent without being Silent yet, or be
	// Silent yet without being silent any more.
	Since time.Time
	// Turns is how often what loops made of it had to be looked at anew: Silent changed, or would have but for a pause.
	Turns int

	missed bool          // Silent would have changed in this pause
	turned time.Time     // when Silent last changed
	pause  time.Duration // how long it then stays as it is
}

// Look returns what is decided about a cluster at a time: it is Silent once nothing was heard of it for the duration
// after, and no more once it is heard of. One that comes and goes turns less and less often; whoever looked meanwhile may
// have seen it as it was, and so looks again after the pause. Since is zero for a cluster that is heard of. Again is
// when to look again although nothing happens; 0 for never.
func (c Cluster) Look(since time.Time, after time.Duration, now time.Time) (next Cluster, again time.Duration) {
	next = c
	if next.Since = since; !since.IsZero() && !c.Since.IsZero() && c.Since.Before(since) {
		next.Since = c.Since // the same silence, for another reason
	}
	is, due := !next.Since.IsZero(), now
	if is {
		due = next.Since.Add(after)
	}
	if is == c.Silent {
		if due = now; !c.missed {
			return next, 0
		}
	}
	recent := !c.turned.IsZero() && now.Sub(c.turned) < calm
	if until := c.turned.Add(c.pause); recent && until.After(due) {
		next.missed = c.missed || !due.After(now) && until.After(now)
		due = until
	}
	if due.After(now) {
		return next, due.Sub(now)
	}
	next.Silent, next.Turns, next.missed, next.turned, next.pause = is, c.Turns+1, false, now, 0
	if recent {
		next.pause = min(max(2*c.pause, firstPause), lastPause)
	}
	return next, 0
}
