package drain

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/quota"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/whatif"
)

// Taints returns those of a cluster that is drained: nothing new comes, and what runs there goes.
func Taints() []corev1.Taint {
	return []corev1.Taint{{Key: clusterv1alpha1.TaintClusterUnscheduler, Effect: corev1.TaintEffectNoSchedule}, failover.DrainTaint()}
}

// Input is what a drain is planned from.
type Input struct {
	// Cluster is the one to drain. One that is not among Clusters has nothing.
	Cluster  string
	Clusters []*clusterv1alpha1.Cluster
	// Seen are the nodes of clusters, by name: see Asks. Of others what they report counts.
	Seen map[string]Seen
	// Bindings of today, all of them.
	Bindings []workv1alpha2.Binding
	// Quotas are those of all namespaces.
	Quotas     []*policyv1alpha1.FederatedResourceQuota
	Scheduling placement.Options
	// Taints are those that the cluster gets; nil: those of a drain. Others move something if Scheduling.Failover has them do so.
	Taints []corev1.Taint
	// Now is when the drain begins.
	Now time.Time
}

// Plan returns what becomes of each template that runs in the cluster or is leaving it once the
// cluster is drained, sorted. Each is decided as the scheduler decides it, one after the other:
// the later ones have the room that the earlier ones leave. The inputs are not changed.
func Plan(in Input) []Row {
	p, at := planned(in)
	if at < 0 {
		return nil
	}
	clusters, silent := p.clusters, rollup.Silences{}
	for _, c := range clusters {
		silent.Add(c)
	}
	order := make([]int, len(p.all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(priority(p.all[b]), priority(p.all[a])),
			cmp.Compare(p.all[a].GetNamespace(), p.all[b].GetNamespace()), cmp.Compare(p.all[a].GetName(), p.all[b].GetName()))
	})
	var rows []Row
	for _, i := range order {
		before, concerned := RowOf(p.all[i], clusters[at], in.Now)
		if !concerned || before.State == Left {
			continue
		}
		p.decide(i)
		after, _ := RowOf(p.all[i], clusters[at], in.Now)
		after.Replicas = before.Replicas
		if after.State == Leaves && before.State != Leaves {
			after.Next = "" // nothing keeps it yet, and the task that could be changed is not there
		}
		switch {
		case after.State == Waits && !failover.Drains(clusters[at]):
			p.endures(&after, p.all[i], clusters[at])
		case after.State == Leaves:
			after.Lacks = p.short[i]
		}
		after.Doubt(silent)
		rows = append(rows, after)
	}
	Sort(rows)
	return rows
}

// Sort sorts rows by namespace, name and kind.
func Sort(rows []Row) {
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
}

func priority(b workv1alpha2.Binding) int32 {
	if p := b.BindingSpec().SchedulePriority; p != nil {
		return p.Priority
	}
	return 0
}

// planning is one plan, as far as it has come.
type planning struct {
	Input
	// clusters are as they are once the one is drained.
	clusters []*clusterv1alpha1.Cluster
	snap     placement.Snapshot
	all      []workv1alpha2.Binding
	// loads are what was placed anew takes of clusters, and assumed what that is. grown is the same by cluster and namespace,
	// as quotas count it.
	loads   map[string]*estimate.Load
	assumed map[string][]estimate.Assumed
	grown   map[string]corev1.ResourceList
	// short is what clusters lack for bindings that were placed anew: see lacks.
	short map[int]string
}

// planned begins a plan, and returns where the cluster is that is drained; negative where it is not.
func planned(in Input) (planning, int) {
	p := planning{
		Input: in, clusters: slices.Clone(in.Clusters), all: slices.Clone(in.Bindings),
		loads: map[string]*estimate.Load{}, assumed: map[string][]estimate.Assumed{}, grown: map[string]corev1.ResourceList{}, short: map[int]string{},
	}
	at := slices.IndexFunc(p.clusters, func(c *clusterv1alpha1.Cluster) bool { return c.Name == in.Cluster })
	if at >= 0 {
		p.clusters[at] = whatif.Tainted(p.clusters[at], in.Now, in.taints()...)
	}
	p.snap = placement.NewSnapshot(p.clusters)
	return p, at
}

// situation is what a binding is decided in.
func (p *planning) situation(b workv1alpha2.Binding) placement.Situation {
	snap := p.snap
	if placement.IsWorkload(b.BindingSpec()) {
		snap = snap.WithReservations(p.loads)
	}
	return placement.Situation{Clusters: snap, Peers: placement.PeersOf(b, p.all), Now: p.Now}
}

// decide has one binding decided, and written where others see it.
func (p *planning) decide(i int) {
	b := p.all[i]
	in := p.situation(b)
	in.Estimates = p.capacity(b, in)
	decision, changed := placement.Decide(b, in, p.Scheduling)
	if !changed {
		return
	}
	after := decided(b, decision)
	err := p.allows(b, after)
	if less, more := placement.AsItRuns(b); err != nil && more && len(decision.Evicts) > 0 {
		if as, moves := placement.Decide(less, in, p.Scheduling); moves && len(as.Evicts) > 0 && p.allows(b, decided(b, as)) == nil {
			after, err = decided(b, as), nil
		}
	}
	if err != nil {
		if decision, changed = placement.Refused(b, decision, p.snap, workv1alpha2.BindingReasonQuotaExceeded, err.Error(), p.Now); !changed {
			return
		}
		after = decided(b, decision)
	}
	p.all[i], p.short[i] = after, p.lacks(b, after)
	p.take(b, after)
}

// decided returns the binding as a decision has it.
func decided(b workv1alpha2.Binding, decision placement.Decision) workv1alpha2.Binding {
	out := b.DeepCopyObject().(workv1alpha2.Binding)
	decision.Put(out)
	return out
}

// allows errs where a quota of its namespace does not allow a binding to become another, as the control plane judges it.
func (p *planning) allows(was, is workv1alpha2.Binding) error {
	growth := quota.Growth(quota.Usage(was.BindingSpec()), quota.Usage(is.BindingSpec()))
	limits := slices.DeleteFunc(slices.Clone(p.Quotas), func(q *policyv1alpha1.FederatedResourceQuota) bool {
		return q.Namespace != is.GetNamespace() || q.DeletionTimestamp != nil || !quota.Concerns(q, growth)
	})
	if len(limits) == 0 {
		return nil
	}
	used := corev1.ResourceList{}
	for _, b := range p.all {
		if b.GetNamespace() == is.GetNamespace() {
			quota.Add(used, quota.Usage(b.BindingSpec()))
		}
	}
	for _, q := range limits {
		if err := quota.Check(q, used, growth); err != nil {
			return err
		}
	}
	return nil
}

// take counts what a binding runs more of in clusters than before.
func (p *planning) take(was, is workv1alpha2.Binding) {
	before, after := was.BindingSpec(), is.BindingSpec()
	had := map[string]int32{}
	for _, t := range before.Clusters {
		had[t.Name] = placement.Units(before, t)
	}
	for _, t := range after.Clusters {
		more := placement.Units(after, t) - had[t.Name]
		p.assume(t.Name, is, more)
		load := placement.LoadOf(after, more)
		if sum := p.loads[t.Name]; sum != nil {
			load = sum.Plus(load)
		}
		if !load.IsZero() {
			p.loads[t.Name] = &load
		}
	}
}
