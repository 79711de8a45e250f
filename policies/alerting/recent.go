package alerting

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
)

// period is how long an Event that is like another one is no news.
const period = 5 * time.Minute

// Recent knows the Events of the last minutes of one namespace. The zero value knows none. It is bounded: of more Events than
// it has room for it forgets the oldest early.
type Recent struct {
	now, before map[[sha256.Size]byte]time.Time
	since       time.Time // when now began
}

// mostRecent is how many Events each of both halves knows.
const mostRecent = 500

// News reports whether an Event is none like one of the last five minutes: of the same object, with the same message and
// metadata. How far something has come is no news: of what goes on, or waits, one Event of a revision counts.
func (r *Recent) News(e Event, now time.Time) bool {
	if r.now == nil || now.Sub(r.since) >= period || len(r.now) >= mostRecent {
		r.now, r.before, r.since = map[[sha256.Size]byte]time.Time{}, r.now, now
	}
	key := keyOf(e)
	for _, known := range []map[[sha256.Size]byte]time.Time{r.now, r.before} {
		if at, found := known[key]; found && now.Sub(at) < period {
			return false
		}
	}
	r.now[key] = now
	return true
}

// Idle reports whether nothing it knows counts any more.
func (r *Recent) Idle(now time.Time) bool { return now.Sub(r.since) >= 2*period }

func keyOf(e Event) [sha256.Size]byte {
	message := e.Message
	if !e.Failed() && slices.Contains([]string{meta.ProgressingReason, meta.ProgressingWithRetryReason, meta.DependencyNotReadyReason}, e.Reason) {
		message = ""
	}
	o := e.InvolvedObject
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %q %q %q", o.Kind, o.Namespace, o.Name, o.UID, e.Severity, e.Reason, message, e.Facts()))
}
