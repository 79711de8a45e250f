package alerting

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/types"
)

// period is how long an Event that is like another one is not new.
const period = 5 * time.Minute

// Recent knows the Events of the last minutes of one namespace. The zero value knows none. It is bounded: of more Events than
// it has room for it forgets the oldest early.
type Recent struct {
	now, before map[[sha256.Size]byte]seen
	since       time.Time // when now began
}

// mostRecent is how many Events each of both halves knows.
const mostRecent = 500

// seen is an Event of the last minutes.
type seen struct {
	at time.Time
	of types.UID
	// ends is true of one that says that all is well.
	ends bool
}

// IsNew reports whether an Event is none like one of the last five minutes: of the same object, with the same message and
// metadata. Progress is not new: of what goes on, or waits, one Event of a revision counts. That a fault is
// over is new, although the end of the one before had the same words.
func (r *Recent) IsNew(e Event, now time.Time) bool {
	if r.now == nil || now.Sub(r.since) >= period || len(r.now) >= mostRecent {
		r.now, r.before, r.since = map[[sha256.Size]byte]seen{}, r.now, now
	}
	key := keyOf(e)
	for _, known := range []map[[sha256.Size]byte]seen{r.now, r.before} {
		if t, found := known[key]; found && now.Sub(t.at) < period {
			return false
		}
	}
	of := e.InvolvedObject.UID
	if e.Failed() {
		for _, known := range []map[[sha256.Size]byte]seen{r.now, r.before} {
			maps.DeleteFunc(known, func(_ [sha256.Size]byte, t seen) bool { return t.ends && t.of == of })
		}
	}
	r.now[key] = seen{at: now, of: of, ends: !e.Failed() && !waits(e)}
	return true
}

// Idle reports whether nothing it knows counts any more.
func (r *Recent) Idle(now time.Time) bool { return now.Sub(r.since) >= 2*period }

// waits reports whether an Event is about what goes on, or waits.
func waits(e Event) bool {
	return slices.Contains([]string{meta.ProgressingReason, meta.ProgressingWithRetryReason, meta.DependencyNotReadyReason}, e.Reason)
}

func keyOf(e Event) [sha256.Size]byte {
	message := e.Message
	if !e.Failed() && waits(e) {
		message = ""
	}
	o := e.InvolvedObject
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %q %q %q", o.Kind, o.Namespace, o.Name, o.UID, e.Severity, e.Reason, message, e.Facts()))
}
