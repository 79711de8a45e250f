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

// limiter keeps namespaces from having more than they may.
type limiter struct {
	hub   client.Reader
	store *artifact.Store
	of    func(namespace string) tenancy.Limits // nil: there are none
}

// sources refuses a repository that is one too many. The older ones stay.
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

// artifacts refuses to store one more where there is no room left. That of the repository's own before
// gives way.
func (l limiter) artifacts(s *state) error {
	limits := l.in(s)
	if limits[tenancy.ArtifactSize] == 0 {
		return nil
	}
	key := client.ObjectKeyFromObject(s.object)
	stored := l.store.Size(artifact.Owner(sourcev1.GitRepositoryKind, key.Namespace, ""), ownerOf(key))
	return exceeded(s, limits.Room(key.Namespace, tenancy.ArtifactSize, stored))
}

func (l limiter) in(s *state) tenancy.Limits {
	if l.of == nil {
		return nil
	}
	return l.of(s.object.Namespace)
}

func exceeded(s *state, err error) error {
	if err == nil {
		return nil
	}
	return loop.Waiting(tenancy.ReasonLimitExceeded, s.interval, err)
}
