package repository

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/fetching"
	"github.com/flotilla-io/flotilla/sources/git"
)

// users finds and restores artifacts in use, in addition to the latest one.
type users struct {
	store     *artifact.Store
	opts      Options
	collector collector
	restorer  *fetching.Restorer
}

// find is the phase that sets the artifacts in use.
func (r *users) find(ctx context.Context, s *state) (loop.Next, error) {
	var err error
	s.inUse, err = r.opts.InUse(ctx, client.ObjectKeyFromObject(s.object))
	return loop.Next{}, err
}

// restore fetches artifacts again that are in use and missing in the store. If the remote no longer has the commit, the
// repository does not become unready.
func (r *users) restore(ctx context.Context, s *state) {
	owner := ownerOf(client.ObjectKeyFromObject(s.object))
	r.restorer.Restore(ctx, owner, s.inUse, func(ctx context.Context, used artifact.Used) error { return r.restoreOne(ctx, s, owner, used) })
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
	tree, err := s.take(ctx, commit)
	if err != nil {
		return err
	}
	defer tree.Close()
	files, _, err := r.collector.files(ctx, s, tree, commit)
	if err != nil {
		return err
	}
	ctx, leave, err := places.Compute(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return r.store.Restore(ctx, owner, used.Digest, files)
}
