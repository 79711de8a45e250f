package binding

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

// hearsay is what Works say from before the loop began, or from before their cluster was
// last back, which nobody may have looked at since: a member may have lost meanwhile what
// they say it has. It is believed again after some time, which is enough for a member to be
// looked at and for what is gone to be told. Use newHearsay.
type hearsay struct {
	clock clock.PassiveClock
	lasts time.Duration

	mu    sync.Mutex
	began time.Time // zero until the loop has
	// recent and older are when Works last said something else, since turned and in the
	// stretch before it. What was said longer ago is no news to anybody.
	recent, older map[types.UID]time.Time
	turned        time.Time
	// awaited are Works whose next word somebody waits for, and until when.
	awaited map[types.UID]time.Time
}

// newHearsay returns what doubts old words for as long as lasts; zero does not.
func newHearsay(now clock.PassiveClock, lasts time.Duration) *hearsay {
	return &hearsay{clock: now, lasts: lasts, awaited: map[types.UID]time.Time{}}
}

// now returns the time. The loop begins with the first question.
func (h *hearsay) now() time.Time {
	now := h.clock.Now()
	if h.began.IsZero() {
		h.began = now
	}
	if now.Sub(h.turned) <= h.lasts {
		return now
	}
	h.older, h.recent, h.turned = h.recent, map[types.UID]time.Time{}, now
	for id, until := range h.awaited {
		if now.After(until) {
			delete(h.awaited, id)
		}
	}
	return now
}

// heard notes a change of a Work, and reports whether somebody waits for that.
func (h *hearsay) heard(before, after *workv1alpha1.Work) bool {
	if h.lasts == 0 || equality.Semantic.DeepEqual(before.Status, after.Status) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	h.recent[after.UID] = now
	_, awaited := h.awaited[after.UID]
	delete(h.awaited, after.UID)
	return awaited
}

// doubts says for how long what works say is doubted, if they say nothing else: they are of
// a cluster that has been there since a time, zero for always. Zero: it is believed.
func (h *hearsay) doubts(works []*workv1alpha1.Work, since time.Time) time.Duration {
	if h.lasts == 0 {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	if since.Before(h.began) {
		since = h.began
	}
	left := h.lasts - now.Sub(since)
	if left <= 0 {
		return 0
	}
	var doubted bool
	for _, w := range works {
		if h.changedAt(w.UID).Before(since) {
			h.awaited[w.UID], doubted = now.Add(left), true
		}
	}
	if !doubted {
		return 0
	}
	return left
}

// changedAt returns when the status of a Work last changed; zero for long ago.
func (h *hearsay) changedAt(id types.UID) time.Time {
	if at, ok := h.recent[id]; ok {
		return at
	}
	return h.older[id]
}
