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

	current atomic.Pointer[placement.Snapshot] // nil: out of date
	mu      sync.Mutex                         // held while a snapshot is made
	last    placement.Snapshot                 // made last; the next is made from it
	edits   atomic.Uint64                      // counts changes
}

// newSnapshots returns snapshots of the clusters that hub, a cache, knows.
func newSnapshots(hub client.Reader) *snapshots { return &snapshots{hub: hub} }

// Current returns the clusters as the cache has them now: the same snapshot as
// long as nothing changes.
func (s *snapshots) Current(ctx context.Context) (*placement.Snapshot, error) {
	if snap := s.current.Load(); snap != nil {
		return snap, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if snap := s.current.Load(); snap != nil {
		return snap, nil
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
	snap := s.last.Renew(clusters)
	s.last = snap
	if s.current.Store(&snap); s.edits.Load() != edits {
		s.current.Store(nil)
	}
	return &snap, nil
}

// Invalidate tells that a cluster has changed.
func (s *snapshots) Invalidate() {
	s.edits.Add(1)
	s.current.Store(nil)
}
