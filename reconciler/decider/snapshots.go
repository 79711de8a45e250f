package decider

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// snapshots holds the member clusters as decisions see them. A snapshot is made
// when one is asked for after a change, shared by all who ask, and never
// changed. Use newSnapshots.
type snapshots struct {
	hub client.Reader

	edits   atomic.Uint64           // counts changes
	current atomic.Pointer[version] // nil: none was made yet
	mu      sync.Mutex              // held while a snapshot is made
}

// version is a snapshot and the count of changes before its clusters were read: there may
// be later ones in it, but none of those is missing.
type version struct {
	placement.Snapshot
	edits uint64
}

// newSnapshots returns snapshots of the clusters that hub, a cache, knows.
func newSnapshots(hub client.Reader) *snapshots { return &snapshots{hub: hub} }

// Current returns the clusters as the cache has them now: the same snapshot as
// long as nothing changes.
func (s *snapshots) Current(ctx context.Context) (*placement.Snapshot, error) {
	if v, ok := s.latest(); ok {
		return &v.Snapshot, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last, ok := s.latest()
	if ok {
		return &last.Snapshot, nil
	}
	edits := s.edits.Load()
	var list clusterv1alpha1.ClusterList
	if err := s.hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	clusters := make([]*clusterv1alpha1.Cluster, len(list.Items))
	for i := range list.Items {
		clusters[i] = &list.Items[i]
	}
	if last == nil {
		last = &version{}
	}
	next := &version{Snapshot: last.Renew(clusters), edits: edits}
	s.current.Store(next)
	return &next.Snapshot, nil
}

// latest returns the snapshot that was made last, nil if there is none, and whether
// nothing has changed since.
func (s *snapshots) latest() (*version, bool) {
	v := s.current.Load()
	return v, v != nil && v.edits == s.edits.Load()
}

// Invalidate reports that a cluster has changed.
func (s *snapshots) Invalidate() { s.edits.Add(1) }
