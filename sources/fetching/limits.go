package fetching

import (
	"context"
	"errors"
	"fmt"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/sources/artifact"
)

// lists returns an empty list of each kind that counts as a source.
func lists() []client.ObjectList {
	return []client.ObjectList{&sourcev1.GitRepositoryList{}, &sourcev1.OCIRepositoryList{}, &sourcev1.BucketList{}, &sourcev1.ExternalArtifactList{}}
}

// Limiter enforces the limits of namespaces.
type Limiter struct {
	Hub   client.Reader
	Store *artifact.Store
	// Of returns the limits of a namespace; nil means no limits.
	Of func(namespace string) tenancy.Limits
}

// Sources returns an error for a source beyond its namespace's limit of sources. The oldest ones count first. Interval is the
// source's.
func (l Limiter) Sources(ctx context.Context, of client.Object, interval time.Duration) error {
	limits := l.in(of)
	if limits[tenancy.Sources] == 0 {
		return nil
	}
	before := 0
	for _, list := range lists() {
		if err := l.Hub.List(ctx, list, client.InNamespace(of.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list the sources of %s: %w", of.GetNamespace(), err)
		}
		err := apimeta.EachListItem(list, func(item runtime.Object) error {
			if other, ok := item.(client.Object); ok && tenancy.Older(other, of) {
				before++
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("count the sources of %s: %w", of.GetNamespace(), err)
		}
	}
	return exceeded(interval, limits.Check(of.GetNamespace(), tenancy.Sources, int64(before+1)))
}

// Artifact returns an error if an artifact of size bytes would exceed the namespace's limit. The newest artifact of the source, whose
// kind is given, does not count, since it is replaced; others in use do.
func (l Limiter) Artifact(of client.Object, kind string, inUse []artifact.Used, interval time.Duration, size int64) error {
	limits := l.in(of)
	if limits[tenancy.ArtifactSize] == 0 {
		return nil
	}
	use := artifact.UsageOf(l.Store, of.GetNamespace(), artifact.Owner(kind, of.GetNamespace(), of.GetName()), Digests(inUse)...)
	last := use.Newest
	if use.InUse > 0 {
		last = 0 // if older artifacts are in use, the newest may stay as well, so the new one may come on top of it
	}
	return exceeded(interval, limits.Replace(of.GetNamespace(), tenancy.ArtifactSize, use.Others+use.InUse, last, size))
}

func (l Limiter) in(of client.Object) tenancy.Limits {
	if l.Of == nil {
		return nil
	}
	return l.Of(of.GetNamespace())
}

// IsLimit reports whether an error is about a namespace's limit.
func IsLimit(err error) bool {
	var e *loop.Error
	return errors.As(err, &e) && e.Reason == tenancy.ReasonLimitExceeded
}

func exceeded(interval time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return loop.Waiting(tenancy.ReasonLimitExceeded, min(interval, tenancy.CapacityPoll), err)
}
