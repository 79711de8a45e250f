package repository

import (
	"context"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/git"
)

// digestsOf returns the digests of artifacts.
func digestsOf(used []artifact.Used) []string {
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

// missed are the artifacts that could not be fetched again, and when, by digest.
// The zero value is empty and may be used by several goroutines.
type missed struct{ since sync.Map }

func (m *missed) add(digest string, now time.Time) { m.since.Store(digest, now) }

func (m *missed) has(digest string, now time.Time) bool {
	since, found := m.since.Load(digest)
	return found && now.Sub(since.(time.Time)) < missing
}

// users finds and restores artifacts in use, in addition to the latest one.
type users struct {
	store  *artifact.Store
	opts   Options
	missed missed
}

// find is the phase that sets the artifacts in use.
func (r *users) find(ctx context.Context, s *state) (loop.Next, error) {
	var err error
	s.inUse, err = r.opts.InUse(ctx, client.ObjectKeyFromObject(s.object))
	return loop.Next{}, err
}

// restore fetches artifacts again that are in use and missing in the store:
// another replica fetched them before this one got the lease, or the disk lost
// them. If the remote no longer has the commit, the repository does not become
// unready.
func (r *users) restore(ctx context.Context, s *state) {
	owner := ownerOf(client.ObjectKeyFromObject(s.object))
	tries := mostRestored
	for _, used := range s.inUse {
		if r.missed.has(used.Digest, r.opts.Clock.Now()) || r.store.Owns(owner, used.Digest) && r.store.Has(used.Digest) {
			continue
		}
		if tries--; tries < 0 {
			return // the rest is for the next reconcile
		}
		if err := r.restoreOne(ctx, s, owner, used); err != nil && ctx.Err() == nil {
			r.missed.add(used.Digest, r.opts.Clock.Now())
			ctrl.LoggerFrom(ctx).Info("the artifact of a revision that is still applied could not be fetched again", "revision", used.Revision, "error", err.Error())
		}
	}
}

func (r *users) restoreOne(ctx context.Context, s *state, owner string, used artifact.Used) error {
	revision, err := git.ParseRevision(used.Revision)
	if err != nil {
		return err
	}
	commit, err := s.remote.Resolve(ctx, git.Ref{Commit: revision.Checksum})
	if err != nil {
		return err
	}
	tree, err := s.remote.Fetch(ctx, commit)
	if err != nil {
		return err
	}
	defer tree.Close()
	ctx, leave, err := places.Compute(ctx)
	if err != nil {
		return err
	}
	defer leave()
	files, err := collect(ctx, s, tree, commit, r.opts.Limits)
	if err != nil {
		return err
	}
	return r.store.Restore(ctx, owner, used.Digest, files)
}
