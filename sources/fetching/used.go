package fetching

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-io/flotilla/sources/artifact"
)

// Digests returns the digests of artifacts.
func Digests(used []artifact.Used) []string {
	var out []string
	for _, u := range used {
		out = append(out, u.Digest)
	}
	return out
}

// mostRestored is how many missing artifacts are fetched again in one reconcile.
const mostRestored = 3

// missing is how long an artifact is not requested again after the remote failed
// to serve it: a server that does not serve commits by hash sends the whole
// history each time.
const missing = time.Hour

// Restorer fetches artifacts again that are in use and missing in the store:
// another replica fetched them before this one got the lease, or the disk lost
// them.
type Restorer struct {
	Store *artifact.Store
	Clock clock.PassiveClock

	missed missed
}

// Restore calls again for those of the used artifacts that the owner misses. An error does not make a source unready: the
// remote may no longer have what it was made from.
func (r *Restorer) Restore(ctx context.Context, owner string, used []artifact.Used, again func(context.Context, artifact.Used) error) {
	tries := mostRestored
	for _, u := range used {
		if r.missed.has(u.Digest, r.Clock.Now()) || r.Store.Owns(owner, u.Digest) && r.Store.Has(u.Digest) {
			continue
		}
		if tries--; tries < 0 {
			return // the rest is for the next reconcile
		}
		if err := again(ctx, u); err != nil && ctx.Err() == nil {
			r.missed.add(u.Digest, r.Clock.Now())
			ctrl.LoggerFrom(ctx).Info("the artifact of a revision that is still applied could not be fetched again", "revision", u.Revision, "error", err.Error())
		}
	}
}

// missed are the artifacts that could not be fetched again, and when, by digest.
// The zero value is empty and may be used by several goroutines.
type missed struct{ since sync.Map }

func (m *missed) add(digest string, now time.Time) { m.since.Store(digest, now) }

func (m *missed) has(digest string, now time.Time) bool {
	since, found := m.since.Load(digest)
	return found && now.Sub(since.(time.Time)) < missing
}
