package scheduler

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

// unschedulable is the queue of bindings that could not be placed. It wakes those for which
// something has changed: room on a cluster that they may use, or a peer that
// has moved. All other changes of clusters and bindings are events of the loop.
// It is safe for use by several goroutines.
type unschedulable struct {
	mu     sync.Mutex
	held   map[client.ObjectKey]hold
	grown  map[string]bool
	stirs  map[group]bool
	moves  uint64 // counts moves of peers
	signal chan struct{}
}

// hold is what a binding waits for.
type hold struct {
	// reason is why it could not be placed: those that lack room wait for room,
	// those over a quota for its edit.
	reason string
	// binding as it was when it could not be placed; shared, not to be changed.
	binding workv1alpha2.Binding
	groups  []group
}

func newUnschedulable() *unschedulable {
	return &unschedulable{
		held:   map[client.ObjectKey]hold{},
		grown:  map[string]bool{},
		stirs:  map[group]bool{},
		signal: make(chan struct{}, 1),
	}
}

// begin returns a mark for hold, to be taken before the decision.
func (w *unschedulable) begin() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.moves
}

// hold has b wait, which could not be placed for the reason. It returns false where a peer may have moved since the mark,
// so that b should be looked at again.
func (w *unschedulable) hold(b workv1alpha2.Binding, reason string, mark uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	groups := groupsOf(b)
	w.held[client.ObjectKeyFromObject(b)] = hold{reason: reason, binding: b, groups: groups}
	return len(groups) == 0 || w.moves == mark
}

// forget ends the wait of the binding under key.
func (w *unschedulable) forget(key client.ObjectKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, key)
}

// roomFreed tells that the clusters have more room than they had.
func (w *unschedulable) roomFreed(clusters ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.held) == 0 {
		return
	}
	for _, cluster := range clusters {
		w.grown[cluster] = true
	}
	w.ring()
}

// peerMoved tells that a binding of the groups came, went or was placed elsewhere.
func (w *unschedulable) peerMoved(groups ...group) {
	if len(groups) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moves++
	if len(w.held) == 0 {
		return // as where another replica leads, and nobody is ever woken
	}
	for _, g := range groups {
		w.stirs[g] = true
	}
	w.ring()
}

// overQuota returns the bindings of the namespace that a quota keeps from being
// placed.
func (w *unschedulable) overQuota(namespace string) []workv1alpha2.Binding {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []workv1alpha2.Binding
	for key, h := range w.held {
		if key.Namespace == namespace && h.reason == workv1alpha2.BindingReasonQuotaExceeded {
			out = append(out, h.binding)
		}
	}
	return out
}

// ofGroup returns the bindings of resources of the API group that could not be
// placed.
func (w *unschedulable) ofGroup(group string) []workv1alpha2.Binding {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []workv1alpha2.Binding
	for _, h := range w.held {
		ref := &h.binding.BindingSpec().Resource
		if schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group == group {
			out = append(out, h.binding)
		}
	}
	return out
}

func (w *unschedulable) ring() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// due returns the bindings for which something has changed since the last call.
// fits reports whether a cluster that has grown may take more of a binding.
func (w *unschedulable) due(fits func(b workv1alpha2.Binding, cluster string) bool) []workv1alpha2.Binding {
	held, grown, stirs := w.take()
	var out []workv1alpha2.Binding
	for _, h := range held {
		stirred := slices.ContainsFunc(h.groups, func(g group) bool { return stirs[g] })
		if stirred || h.reason == workv1alpha2.BindingReasonUnschedulable && grewFor(h.binding, grown, fits) {
			out = append(out, h.binding)
		}
	}
	return out
}

// take returns what waits and what has changed since the last call: thousands
// may wait, and the watches are not to be held up for as long as those are
// looked at.
func (w *unschedulable) take() (held []hold, grown map[string]bool, stirs map[group]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	held = slices.Collect(maps.Values(w.held))
	grown, stirs = w.grown, w.stirs
	w.grown, w.stirs = map[string]bool{}, map[group]bool{}
	return held, grown, stirs
}

func grewFor(b workv1alpha2.Binding, grown map[string]bool, fits func(workv1alpha2.Binding, string) bool) bool {
	for cluster := range grown {
		if fits(b, cluster) {
			return true
		}
	}
	return false
}

// settle is for how long changes gather after bindings were woken: clusters
// report all the time.
const settle = time.Second

// run calls wake when something has changed, at once and then at most once per
// settle, until ctx ends.
func (w *unschedulable) run(ctx context.Context, c clock.Clock, wake func(context.Context)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.signal:
		}
		wake(ctx)
		timer := c.NewTimer(settle)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

// roomier reports whether a cluster has more of any resource free than before, by
// the sums or in a grade of its nodes.
func roomier(before, after *clusterv1alpha1.ResourceSummary) bool {
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
