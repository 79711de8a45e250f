package decider

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Unschedulable is the queue of bindings that could not be placed. It finds those for which
// something has happened: a cluster that they may use has more available, or a peer was
// placed elsewhere. All other changes of clusters and bindings are events of the loop.
// It is safe for use by several goroutines. A Decider has one.
type Unschedulable struct {
	mu       sync.Mutex
	entries  map[client.ObjectKey]entry
	clusters map[string]bool // those with more available since Due was last called
	groups   map[group]bool  // those with a peer that came, went or was placed elsewhere since then
	moves    uint64          // counts events of peers
	signal   chan struct{}
}

// entry is a binding in the queue.
type entry struct {
	// reason is why it could not be placed: those that lack capacity wait for capacity,
	// those over a quota for its edit.
	reason string
	// binding as it was when it could not be placed; shared, not to be changed.
	binding workv1alpha2.Binding
	groups  []group
}

func newUnschedulable() *Unschedulable {
	return &Unschedulable{
		entries:  map[client.ObjectKey]entry{},
		clusters: map[string]bool{},
		groups:   map[group]bool{},
		signal:   make(chan struct{}, 1),
	}
}

// Cycle returns the scheduling cycle for Add; take it before the decision.
func (u *Unschedulable) Cycle() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.moves
}

// Add queues b, which could not be placed for the reason. It returns false where a peer
// may have moved since that cycle, so that b should be looked at again.
func (u *Unschedulable) Add(b workv1alpha2.Binding, reason string, cycle uint64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	groups := groupsOf(b)
	u.entries[client.ObjectKeyFromObject(b)] = entry{reason: reason, binding: b, groups: groups}
	return len(groups) == 0 || u.moves == cycle
}

// Forget takes the binding under key out.
func (u *Unschedulable) Forget(key client.ObjectKey) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.entries, key)
}

// MoreCapacity reports that the clusters have more available than they had.
func (u *Unschedulable) MoreCapacity(clusters ...string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.entries) == 0 {
		return
	}
	for _, cluster := range clusters {
		u.clusters[cluster] = true
	}
	u.ring()
}

// peerEvent reports that a binding of the groups came, went or was placed elsewhere.
func (u *Unschedulable) peerEvent(groups ...group) {
	if len(groups) == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.moves++
	if len(u.entries) == 0 {
		return // as on a replica that does not lead, where Run wakes nobody
	}
	for _, g := range groups {
		u.groups[g] = true
	}
	u.ring()
}

// OverQuota returns the bindings of the namespace that a quota keeps from being
// placed.
func (u *Unschedulable) OverQuota(namespace string) []workv1alpha2.Binding {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []workv1alpha2.Binding
	for key, e := range u.entries {
		if key.Namespace == namespace && e.reason == workv1alpha2.BindingReasonQuotaExceeded {
			out = append(out, e.binding)
		}
	}
	return out
}

// Unfit returns the bindings that no cluster fits.
func (u *Unschedulable) Unfit() []workv1alpha2.Binding {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []workv1alpha2.Binding
	for _, e := range u.entries {
		if e.reason == workv1alpha2.BindingReasonNoClusterFit {
			out = append(out, e.binding)
		}
	}
	return out
}

// OfGroup returns the bindings of resources of the API group that could not be
// placed.
func (u *Unschedulable) OfGroup(group string) []workv1alpha2.Binding {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []workv1alpha2.Binding
	for _, e := range u.entries {
		ref := &e.binding.BindingSpec().Resource
		if schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group == group {
			out = append(out, e.binding)
		}
	}
	return out
}

func (u *Unschedulable) ring() {
	select {
	case u.signal <- struct{}{}:
	default:
	}
}

// Due returns the bindings for which something has happened since the last call.
// fits reports whether a cluster that has more available may take more of a binding.
func (u *Unschedulable) Due(fits func(b workv1alpha2.Binding, cluster string) bool) []workv1alpha2.Binding {
	entries, clusters, groups := u.take()
	var out []workv1alpha2.Binding
	for _, e := range entries {
		moved := slices.ContainsFunc(e.groups, func(g group) bool { return groups[g] })
		if moved || e.reason == workv1alpha2.BindingReasonUnschedulable && fitsAny(e.binding, clusters, fits) {
			out = append(out, e.binding)
		}
	}
	return out
}

// take returns what waits and what has happened since the last call: thousands
// may wait, and the watches are not to be held up for as long as those are
// looked at.
func (u *Unschedulable) take() (entries []entry, clusters map[string]bool, groups map[group]bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	entries = slices.Collect(maps.Values(u.entries))
	clusters, groups = u.clusters, u.groups
	u.clusters, u.groups = map[string]bool{}, map[group]bool{}
	return entries, clusters, groups
}

func fitsAny(b workv1alpha2.Binding, clusters map[string]bool, fits func(workv1alpha2.Binding, string) bool) bool {
	for cluster := range clusters {
		if fits(b, cluster) {
			return true
		}
	}
	return false
}

// coalesce is for how long events gather after bindings were found due: clusters
// report all the time.
const coalesce = time.Second

// Run calls wake when something has happened, at once and then at most once per
// coalesce, until ctx ends.
func (u *Unschedulable) Run(ctx context.Context, c clock.Clock, wake func(context.Context)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-u.signal:
		}
		wake(ctx)
		timer := c.NewTimer(coalesce)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

// hasMore reports whether a cluster has more of any resource free than before, by
// the sums or in a grade of its nodes.
func hasMore(before, after *clusterv1alpha1.ResourceSummary) bool {
	if after == nil {
		return false
	}
	if before == nil {
		return true
	}
	for name := range after.Allocatable {
		was, is := free(before, name), free(after, name)
		if is.Cmp(was) > 0 {
			return true
		}
	}
	for i := range after.AllocatableModelings {
		is := &after.AllocatableModelings[i]
		at := slices.IndexFunc(before.AllocatableModelings, func(m clusterv1alpha1.AllocatableModeling) bool { return m.Grade == is.Grade })
		if at < 0 || is.Count > before.AllocatableModelings[at].Count {
			return true
		}
	}
	return false
}

func free(summary *clusterv1alpha1.ResourceSummary, name corev1.ResourceName) resource.Quantity {
	have := summary.Allocatable[name].DeepCopy() // a large one is held by reference
	have.Sub(summary.Allocated[name])
	have.Sub(summary.Allocating[name])
	return have
}
