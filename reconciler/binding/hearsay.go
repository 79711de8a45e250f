package binding

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

// hearsay is what Works say from before the loop began, which nobody may have looked at
// since: while the loops stood still, a member may have lost what they say it has. It is
// believed again some time after the loop began, which is enough for members to be
// looked at and for what is gone to be told. Use newHearsay.
type hearsay struct {
	clock clock.PassiveClock
	lasts time.Duration

	mu    sync.Mutex
	began time.Time // zero until the loop has
	// fresh are the Works that have said something else since; nil once all are believed.
	fresh map[types.UID]bool
}

// newHearsay returns what doubts old words for as long as lasts; zero does not.
func newHearsay(now clock.PassiveClock, lasts time.Duration) *hearsay {
	return &hearsay{clock: now, lasts: lasts, fresh: map[types.UID]bool{}}
}

// left is for how long what was said before the loop began is doubted; zero: no more.
// The loop begins with the first question.
func (h *hearsay) left() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fresh == nil {
		return 0
	}
	if h.began.IsZero() {
		h.began = h.clock.Now()
	}
	if left := h.lasts - h.clock.Since(h.began); left > 0 {
		return left
	}
	h.fresh = nil
	return 0
}

// heard notes a change of a Work, and says whether it is the first word of it that is
// believed.
func (h *hearsay) heard(before, after *workv1alpha1.Work) bool {
	if h.left() == 0 || equality.Semantic.DeepEqual(before.Status, after.Status) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fresh == nil || h.fresh[after.UID] {
		return false
	}
	h.fresh[after.UID] = true
	return true
}

// believes says whether all of works have said what they say since the loop began, or
// may be believed all the same.
func (h *hearsay) believes(works []*workv1alpha1.Work) bool {
	if h.left() == 0 {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range works {
		if !h.fresh[w.UID] {
			return false
		}
	}
	return true
}
