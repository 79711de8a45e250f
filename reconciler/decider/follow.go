package decider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// expiry is how often reservations are looked at that nothing is heard of.
const expiry = 30 * time.Second

// Register keeps what is decided by up to date with the cache of mgr.
func (d *Decider) Register(ctx context.Context, mgr ctrl.Manager) error {
	if err := Index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return mgr.Add(&follower{decider: d, cache: mgr.GetCache()})
}

// follower passes to a decider every event of a cluster or a binding.
type follower struct {
	decider *Decider
	cache   cache.Cache
}

// NeedLeaderElection keeps a stand-by up to date too.
func (f *follower) NeedLeaderElection() bool { return false }

// Start follows until ctx ends.
func (f *follower) Start(ctx context.Context) error {
	clusters := toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { f.decider.ClusterChanged(nil, obj.(*clusterv1alpha1.Cluster)) },
		UpdateFunc: func(before, after any) {
			f.decider.ClusterChanged(before.(*clusterv1alpha1.Cluster), after.(*clusterv1alpha1.Cluster))
		},
		DeleteFunc: func(any) { f.decider.ClusterChanged(nil, nil) },
	}
	bindings := toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { f.decider.reservations.observed(obj.(workv1alpha2.Binding)) },
		UpdateFunc: func(before, after any) {
			f.decider.BindingChanged(before.(workv1alpha2.Binding), after.(workv1alpha2.Binding))
		},
		DeleteFunc: func(obj any) { f.decider.BindingGone(obj) },
	}
	var stops []func() error
	for _, follow := range []struct {
		kind    client.Object
		handler toolscache.ResourceEventHandler
	}{
		{&clusterv1alpha1.Cluster{}, clusters}, {&workv1alpha2.ResourceBinding{}, bindings}, {&workv1alpha2.ClusterResourceBinding{}, bindings},
	} {
		informer, err := f.cache.GetInformer(ctx, follow.kind)
		if err != nil {
			return fmt.Errorf("watch clusters and bindings: %w", err)
		}
		registration, err := informer.AddEventHandler(follow.handler)
		if err != nil {
			return fmt.Errorf("watch clusters and bindings: %w", err)
		}
		stops = append(stops, func() error { return informer.RemoveEventHandler(registration) })
	}
	f.decider.tidy(ctx)
	var err error
	for _, stop := range stops {
		err = errors.Join(err, stop())
	}
	return err
}

// tidy ends reservations that are too old, now and then, until ctx ends.
func (d *Decider) tidy(ctx context.Context) {
	ticker := clock.RealClock{}.NewTicker(expiry)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			d.reservations.expire()
		}
	}
}

// ClusterChanged has decisions from here on see clusters as they are now. A cluster that
// came has no before, one that left neither.
func (d *Decider) ClusterChanged(before, after *clusterv1alpha1.Cluster) {
	d.snapshots.Invalidate()
	if before != nil && after != nil && hasMore(before.Status.ResourceSummary, after.Status.ResourceSummary) {
		d.unschedulable.MoreCapacity(after.Name)
	}
}

// BindingChanged records a binding, and where it is placed.
func (d *Decider) BindingChanged(before, after workv1alpha2.Binding) {
	d.reservations.observed(after)
	was, is := groupsOf(before), groupsOf(after)
	if !slices.Equal(was, is) || !slices.Equal(namesOf(before.BindingSpec().Clusters), namesOf(after.BindingSpec().Clusters)) {
		d.unschedulable.peerEvent(slices.Concat(was, is)...)
	}
}

// BindingGone gives back what was reserved for a binding: an object, or the tombstone of one.
func (d *Decider) BindingGone(obj any) {
	if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	if b, ok := obj.(workv1alpha2.Binding); ok {
		d.reservations.gone(client.ObjectKeyFromObject(b))
		d.unschedulable.peerEvent(groupsOf(b)...)
	}
}
