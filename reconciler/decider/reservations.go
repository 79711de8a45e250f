package decider

import (
	"bytes"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// timeout is how long a reservation lasts whose binding is not heard of again.
const timeout = 5 * time.Minute

// reservations are what was reserved for bindings and does not show in what clusters
// report yet, and where bindings were placed that the cache does not show yet.
// It starts empty: after a restart, what was reserved before it shows soon. It
// is safe for use by several goroutines.
type reservations struct {
	clock clock.PassiveClock
	// disabled reserves nothing, and knows of placements alone.
	disabled bool
	// freed is called with clusters that have more capacity than they had.
	freed func(clusters ...string)

	mu          sync.Mutex
	byBinding   map[client.ObjectKey]*reservation
	groups      map[group]map[client.ObjectKey]bool // those that know of a placement in the group
	sums        map[string]corev1.ResourceList      // of shares, by cluster
	assumptions assumptions                         // of shares, by cluster and what is asked for
	dirty       map[string]bool                     // clusters whose sums the view does not show
	base        *placement.Snapshot                 // what the view was made from
	view        placement.Snapshot
	seq         uint64            // counts commits
	grown       map[string]uint64 // the commit that last reserved more of a cluster
	placed      map[group]uint64  // the commit that last placed one of a group
	// last is the commit at the last expiry. What grown and placed recorded up to
	// the one before is forgotten: of decisions as old, nothing is known.
	last, forgotten uint64
}

// reservation is what was reserved for one binding.
type reservation struct {
	// at is when the last decision was made.
	at time.Time
	// generation of the binding that was decided about: later ones show the
	// decision.
	generation int64
	shares     map[string]share
	// open says that it is not known yet what became of the last decision, and
	// before are the shares that stood before it.
	open   bool
	before map[string]share
	// clusters of the last decision, and the groups that it matters to; none once
	// the cache shows it.
	clusters []string
	groups   []group
}

// share is what was reserved of one cluster.
type share struct {
	units int32
	load  estimate.Load
	unit  *unit // nil: no estimator asks what it is
	at    time.Time
	// reported is what the cluster reported of the binding at that time.
	reported []byte
}

func newReservations(c clock.PassiveClock, freed func(clusters ...string)) *reservations {
	return &reservations{
		clock:       c,
		freed:       freed,
		byBinding:   map[client.ObjectKey]*reservation{},
		groups:      map[group]map[client.ObjectKey]bool{},
		sums:        map[string]corev1.ResourceList{},
		assumptions: assumptions{by: map[string]map[string]assumption{}, cached: map[string][]estimate.Assumed{}},
		dirty:       map[string]bool{},
		grown:       map[string]uint64{},
		placed:      map[group]uint64{},
	}
}

// snapshot returns the clusters and the commit that the answer is as of. Where capacity
// matters, they come with all that was reserved of them.
func (r *reservations) snapshot(base *placement.Snapshot, capacity bool) (placement.Snapshot, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !capacity {
		return *base, r.seq
	}
	if r.base != base {
		r.base, r.view = base, *base
		for cluster := range r.sums {
			r.dirty[cluster] = true
		}
	}
	if len(r.dirty) > 0 {
		loads := make(map[string]*estimate.Load, len(r.dirty))
		for cluster := range r.dirty {
			loads[cluster] = nil
			if sum := (estimate.Load{Resources: r.sums[cluster].DeepCopy()}); !sum.IsZero() {
				loads[cluster] = &sum
			}
		}
		r.view = r.view.WithReservations(loads)
		clear(r.dirty)
	}
	return r.view, r.seq
}

// commit reserves what decision takes to b. Where something that the decision
// relied on has changed since the commit that it was made as of, nothing happens
// and the result is false.
func (r *reservations) commit(b workv1alpha2.Binding, decision *placement.Decision, asOf uint64) bool {
	if slices.EqualFunc(decision.Clusters, b.BindingSpec().Clusters, sameTarget) {
		return true
	}
	freed, ok := r.reserve(b, decision, asOf)
	if len(freed) > 0 {
		r.freed(freed...)
	}
	return ok
}

// reserve stores the shares where the decision differs, and returns the clusters
// of which it takes less than was reserved before.
func (r *reservations) reserve(b workv1alpha2.Binding, decision *placement.Decision, asOf uint64) ([]string, bool) {
	key, groups := client.ObjectKeyFromObject(b), groupsOf(b)
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.byBinding[key]
	if was == nil {
		was = &reservation{}
	}
	shares, more := r.shares(b, decision, was.shares)
	if r.disturbed(placement.CapacityMatters(b.BindingSpec()) || len(decision.Evicts) > 0, more, groups, asOf) {
		return nil, false
	}
	r.seq++
	for _, cluster := range more {
		r.grown[cluster] = r.seq
	}
	for _, g := range groups {
		r.placed[g] = r.seq
	}
	return r.put(key, &reservation{
		at: r.clock.Now(), generation: b.GetGeneration(), shares: shares, open: true, before: was.shares, clusters: namesOf(decision.Clusters), groups: groups,
	}), true
}

// disturbed reports whether a decision that takes more of clusters, for which their capacity counted or not, was overtaken.
func (r *reservations) disturbed(capacity bool, more []string, groups []group, asOf uint64) bool {
	if asOf < r.forgotten {
		return true
	}
	if capacity {
		for _, cluster := range more {
			if r.grown[cluster] > asOf {
				return true
			}
		}
	}
	return slices.ContainsFunc(groups, func(g group) bool { return r.placed[g] > asOf })
}

// shares returns what b is reserved once decision is made, and the clusters of
// which that is more than before.
func (r *reservations) shares(b workv1alpha2.Binding, decision *placement.Decision, was map[string]share) (map[string]share, []string) {
	if r.disabled {
		return nil, nil
	}
	spec, now := b.BindingSpec(), r.clock.Now()
	assigned := make(map[string]int32, len(spec.Clusters))
	for _, t := range spec.Clusters {
		assigned[t.Name] = placement.Units(spec, t)
	}
	var each *unit
	if r.assumptions.kept {
		each = unitOf(b)
	}
	loads := map[int32]estimate.Load{} // most clusters get as much as others
	out := make(map[string]share, len(decision.Clusters))
	var more []string
	for _, t := range decision.Clusters {
		all, had := placement.Units(spec, t), was[t.Name]
		units := min(max(had.units+all-assigned[t.Name], 0), all)
		if units == 0 {
			continue
		}
		load, known := loads[units]
		if !known {
			load = placement.LoadOf(spec, units)
			loads[units] = load
		}
		if load.IsZero() {
			continue
		}
		is := share{units: units, load: load, unit: each, at: had.at, reported: had.reported}
		if units > had.units {
			is.at, is.reported = now, reportOf(b, t.Name)
			more = append(more, t.Name)
		}
		out[t.Name] = is
	}
	return out, more
}

// withdraw restores what stood before the last decision on b. A decision on
// another version of b stands: it was written. What b says of its clusters as it
// is counts again.
func (r *reservations) withdraw(b workv1alpha2.Binding) {
	r.change(client.ObjectKeyFromObject(b), func(e *reservation) {
		if e.open && e.generation == b.GetGeneration() {
			e.shares, e.open, e.before, e.groups = e.before, false, nil, nil
			e.generation--
		}
	})
}

// gone records that there is no such binding any more.
func (r *reservations) gone(key client.ObjectKey) {
	r.change(key, func(e *reservation) { *e = reservation{} })
}

// observed records that the cache shows b. A share ends where the cluster is no
// target any more, and where the cluster reports since the reservation was made
// that all is well.
func (r *reservations) observed(b workv1alpha2.Binding) {
	r.change(client.ObjectKeyFromObject(b), func(e *reservation) {
		if b.GetGeneration() <= e.generation {
			return // older than the decision
		}
		e.open, e.before, e.groups = false, nil, nil
		spec := b.BindingSpec()
		kept := make(map[string]share, len(e.shares))
		for _, t := range spec.Clusters {
			s, ok := e.shares[t.Name]
			if !ok || landed(b, t.Name, s) {
				continue
			}
			if all := placement.Units(spec, t); all < s.units {
				s.units, s.load = all, placement.LoadOf(spec, all)
			}
			if s.units > 0 {
				kept[t.Name] = s
			}
		}
		e.shares = kept
	})
}

// landed reports whether the cluster reports that what was reserved runs.
func landed(b workv1alpha2.Binding, cluster string, s share) bool {
	for i := range b.BindingStatus().AggregatedStatus {
		item := &b.BindingStatus().AggregatedStatus[i]
		if item.ClusterName == cluster {
			return rollup.Shown(item.Health, item.Status) == workv1alpha2.ResourceHealthy && !bytes.Equal(reportOf(b, cluster), s.reported)
		}
	}
	return false
}

// reportOf returns what the cluster says of b; nil if it says nothing.
func reportOf(b workv1alpha2.Binding, cluster string) []byte {
	for i := range b.BindingStatus().AggregatedStatus {
		item := &b.BindingStatus().AggregatedStatus[i]
		if item.ClusterName != cluster {
			continue
		}
		out := []byte(item.Health)
		if item.Status != nil {
			out = append(out, item.Status.Raw...)
		}
		return out
	}
	return nil
}

// expire ends the reservations of which nothing was heard for long.
func (r *reservations) expire() {
	now := r.clock.Now()
	for _, key := range r.keys() {
		r.change(key, func(e *reservation) {
			e.shares = maps.Clone(e.shares)
			maps.DeleteFunc(e.shares, func(_ string, s share) bool { return now.Sub(s.at) >= timeout })
			if now.Sub(e.at) >= timeout {
				e.open, e.before, e.groups = false, nil, nil
			}
		})
	}
	r.forget()
}

// forget drops what says when clusters and groups were last decided about, and
// nobody decides on any more.
func (r *reservations) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgotten, r.last = r.last, r.seq
	maps.DeleteFunc(r.grown, func(_ string, at uint64) bool { return at <= r.forgotten })
	maps.DeleteFunc(r.placed, func(_ group, at uint64) bool { return at <= r.forgotten })
	maps.DeleteFunc(r.sums, func(cluster string, sum corev1.ResourceList) bool {
		return !r.dirty[cluster] && (estimate.Load{Resources: sum}).IsZero()
	})
}

func (r *reservations) keys() []client.ObjectKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.byBinding))
}

// change edits the entry under key, if there is one, and reports which clusters
// have more capacity for it.
func (r *reservations) change(key client.ObjectKey, edit func(*reservation)) {
	r.mu.Lock()
	was, ok := r.byBinding[key]
	if !ok {
		r.mu.Unlock()
		return
	}
	is := *was
	edit(&is)
	freed := r.put(key, &is)
	r.mu.Unlock()
	if len(freed) > 0 {
		r.freed(freed...)
	}
}

// put replaces the entry under key and returns the clusters of which less is
// reserved for it than before.
func (r *reservations) put(key client.ObjectKey, is *reservation) (freed []string) {
	var was map[string]share
	if e, ok := r.byBinding[key]; ok {
		was = e.shares
	}
	for cluster, s := range is.shares {
		had := was[cluster]
		if had.units != s.units || !had.unit.equals(s.unit) || !had.load.Equal(s.load) {
			r.add(cluster, had.load, s.load)
			r.assumptions.move(cluster, had, s)
		}
		if s.units < had.units {
			freed = append(freed, cluster)
		}
	}
	for cluster, had := range was {
		if _, still := is.shares[cluster]; !still {
			r.add(cluster, had.load, estimate.Load{})
			r.assumptions.move(cluster, had, share{})
			freed = append(freed, cluster)
		}
	}
	r.regroup(key, is)
	if r.byBinding[key] = is; len(is.shares) == 0 && !is.open {
		delete(r.byBinding, key)
	}
	return freed
}

// regroup puts the entry under key into the groups that it is in from now on.
func (r *reservations) regroup(key client.ObjectKey, is *reservation) {
	if was, ok := r.byBinding[key]; ok {
		for _, g := range was.groups {
			if delete(r.groups[g], key); len(r.groups[g]) == 0 {
				delete(r.groups, g)
			}
		}
	}
	for _, g := range is.groups {
		if r.groups[g] == nil {
			r.groups[g] = map[client.ObjectKey]bool{}
		}
		r.groups[g][key] = true
	}
}

// add turns one load on a cluster into another.
func (r *reservations) add(cluster string, was, is estimate.Load) {
	sum := r.sums[cluster]
	if sum == nil {
		sum = corev1.ResourceList{}
		r.sums[cluster] = sum
	}
	for name, q := range was.Resources {
		total := sum[name]
		total.Sub(q)
		sum[name] = total
	}
	for name, q := range is.Resources {
		total := sum[name]
		total.Add(q)
		sum[name] = total
	}
	r.dirty[cluster] = true
}

func sameTarget(a, b workv1alpha2.TargetCluster) bool {
	return a.Name == b.Name && a.Replicas == b.Replicas && slices.Equal(a.Components, b.Components)
}

func namesOf(targets []workv1alpha2.TargetCluster) []string {
	out := make([]string, len(targets))
	for i := range targets {
		out[i] = targets[i].Name
	}
	return out
}
