package heard

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

// Freshness distinguishes Work statuses that describe the member as it is now from stale ones: those written
// before the loop began, or before their cluster last became reachable. The member may have lost in the meantime
// what such a status reports, and acting on it could delete the last copy of a workload. A stale status is
// trusted once the window is over, which is long enough for the execution loop to compare the member and to report a
// loss. Use NewFreshness.
type Freshness struct {
	clock  clock.PassiveClock
	window time.Duration

	mu    sync.Mutex
	began time.Time // zero until the loop has
	// recent and older are when the statuses of Works last changed: since rotated, and in the window
	// before it. Older changes are dropped, which bounds the memory.
	recent, older map[types.UID]time.Time
	rotated       time.Time
	// awaited are the Works for whose next status a binding waits, and until when.
	awaited map[types.UID]time.Time
}

// NewFreshness returns one that treats a status as stale for the length of window; zero trusts every status.
func NewFreshness(now clock.PassiveClock, window time.Duration) *Freshness {
	return &Freshness{clock: now, window: window, awaited: map[types.UID]time.Time{}}
}

// now returns the time, and drops what is older than two windows. The loop counts as begun at the first call.
func (f *Freshness) now() time.Time {
	now := f.clock.Now()
	if f.began.IsZero() {
		f.began = now
	}
	if now.Sub(f.rotated) <= f.window {
		return now
	}
	f.older, f.recent, f.rotated = f.recent, map[types.UID]time.Time{}, now
	for id, until := range f.awaited {
		if now.After(until) {
			delete(f.awaited, id)
		}
	}
	return now
}

// Observe records that the status of a Work changed, and reports whether a binding waits for that.
func (f *Freshness) Observe(before, after *workv1alpha1.Work) bool {
	if f.window == 0 || equality.Semantic.DeepEqual(before.Status, after.Status) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	f.recent[after.UID] = now
	_, awaited := f.awaited[after.UID]
	delete(f.awaited, after.UID)
	return awaited
}

// UnconfirmedFor returns for how much longer the statuses of the Works of one cluster are stale, unless they
// change before; zero if they are current. since is when the cluster last became reachable, zero if it always was.
func (f *Freshness) UnconfirmedFor(works []*workv1alpha1.Work, since time.Time) time.Duration {
	if f.window == 0 {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if since.Before(f.began) {
		since = f.began
	}
	left := f.window - now.Sub(since)
	if left <= 0 {
		return 0
	}
	var stale bool
	for _, w := range works {
		if f.changedAt(w.UID).Before(since) {
			f.awaited[w.UID], stale = now.Add(left), true
		}
	}
	if !stale {
		return 0
	}
	return left
}

// changedAt returns when the status of a Work last changed; zero for long ago.
func (f *Freshness) changedAt(id types.UID) time.Time {
	if at, ok := f.recent[id]; ok {
		return at
	}
	return f.older[id]
}
