package repository

import (
	"context"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/sources/artifact"
)

// limiter enforces the limits of namespaces.
type limiter struct {
	hub   client.Reader
	store *artifact.Store
	of    func(namespace string) tenancy.Limits // nil means no limits
}

// sources returns an error for a repository beyond its namespace's limit of
// repositories. The oldest ones count first.
func (l limiter) sources(ctx context.Context, s *state) (loop.Next, error) {
	limits := l.in(s)
	if limits[tenancy.Sources] == 0 {
		return loop.Next{}, nil
	}
	var all sourcev1.GitRepositoryList
	if err := l.hub.List(ctx, &all, client.InNamespace(s.object.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return loop.Next{}, fmt.Errorf("list the GitRepositories of %s: %w", s.object.Namespace, err)
	}
	before := 0
	for i := range all.Items {
		if tenancy.Older(&all.Items[i], s.object) {
			before++
		}
	}
	return loop.Next{}, exceeded(s, limits.Check(s.object.Namespace, tenancy.Sources, int64(before+1)))
}

// artifact returns an error if an artifact of size bytes would exceed the
// namespace's limit. The repository's newest artifact does not count, since it is
// replaced; others in use do.
func (l limiter) artifact(s *state, size int64) error {
	limits := l.in(s)
	if limits[tenancy.ArtifactSize] == 0 {
		return nil
	}
	key := client.ObjectKeyFromObject(s.object)
	use := artifact.UsageOf(l.store, artifact.Owner(sourcev1.GitRepositoryKind, key.Namespace, ""), ownerOf(key), digestsOf(s.inUse)...)
	last := use.Newest
	if use.InUse > 0 {
		last = 0 // if older artifacts are in use, the newest may stay as well, so the new one may come on top of it
	}
	return exceeded(s, limits.Replace(key.Namespace, tenancy.ArtifactSize, use.Others+use.InUse, last, size))
}

func (l limiter) in(s *state) tenancy.Limits {
	if l.of == nil {
		return nil
	}
	return l.of(s.object.Namespace)
}

// isLimit reports whether an error is about a namespace's limit.
func isLimit(err error) bool {
	return err != nil && loop.As(err, "").Reason == tenancy.ReasonLimitExceeded
}

func exceeded(s *state, err error) error {
	if err == nil {
		return nil
	}
	return loop.Waiting(tenancy.ReasonLimitExceeded, min(s.interval, tenancy.CapacityPoll), err)
}
