package scheduler

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// Snapshots holds the member clusters as decisions see them. A snapshot is made
// when one is asked for after a change, shared by all who ask, and never
// changed. Use NewSnapshots.
type Snapshots struct {
	hub client.Reader

	current atomic.Pointer[placement.Snapshot] // nil: out of date
	mu      sync.Mutex                         // held while a snapshot is made
	edits   atomic.Uint64                      // counts changes
}

// NewSnapshots returns snapshots of the clusters that hub, a cache, knows.
func NewSnapshots(hub client.Reader) *Snapshots { return &Snapshots{hub: hub} }

// Current returns the clusters as the cache has them now.
func (s *Snapshots) Current(ctx context.Context) (placement.Snapshot, error) {
	if snap := s.current.Load(); snap != nil {
		return *snap, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if snap := s.current.Load(); snap != nil {
		return *snap, nil
	}
	edits := s.edits.Load()
	var list clusterv1alpha1.ClusterList
	if err := s.hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return placement.Snapshot{}, fmt.Errorf("list clusters: %w", err)
	}
	clusters := make([]*clusterv1alpha1.Cluster, len(list.Items))
	for i := range list.Items {
		clusters[i] = &list.Items[i]
	}
	snap := placement.NewSnapshot(clusters)
	if s.current.Store(&snap); s.edits.Load() != edits {
		s.current.Store(nil)
	}
	return snap, nil
}

// Invalidate tells that a cluster has changed.
func (s *Snapshots) Invalidate() {
	s.edits.Add(1)
	s.current.Store(nil)
}

// Register keeps the snapshots up to date with the cache of mgr.
func (s *Snapshots) Register(mgr ctrl.Manager) error {
	return mgr.Add(&follower{snapshots: s, cache: mgr.GetCache()})
}

// follower invalidates snapshots on every event of a cluster.
type follower struct {
	snapshots *Snapshots
	cache     cache.Cache
}

// NeedLeaderElection keeps a stand-by up to date too.
func (f *follower) NeedLeaderElection() bool { return false }

// Start follows the clusters until ctx ends.
func (f *follower) Start(ctx context.Context) error {
	informer, err := f.cache.GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { f.snapshots.Invalidate() },
		UpdateFunc: func(any, any) { f.snapshots.Invalidate() },
		DeleteFunc: func(any) { f.snapshots.Invalidate() },
	})
	if err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	<-ctx.Done()
	return informer.RemoveEventHandler(registration)
}
