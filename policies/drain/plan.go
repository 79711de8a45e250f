package drain

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
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
	// Bindings of today, all of them.
	Bindings   []workv1alpha2.Binding
	Scheduling placement.Options
	// Now is when the drain begins.
	Now time.Time
}

// Plan returns what becomes of each template that runs in the cluster or is leaving it once the
// cluster is drained, sorted. Each is decided as the scheduler decides it, one after the other:
// the later ones have the room that the earlier ones leave. The inputs are not changed.
func Plan(in Input) []Row {
	clusters := slices.Clone(in.Clusters)
	at := slices.IndexFunc(clusters, func(c *clusterv1alpha1.Cluster) bool { return c.Name == in.Cluster })
	if at < 0 {
		return nil
	}
	clusters[at] = drained(clusters[at], in.Now)
	p := planning{Input: in, snap: placement.NewSnapshot(clusters), all: slices.Clone(in.Bindings), loads: map[string]*estimate.Load{}}
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
		before, concerned := Look(p.all[i], clusters[at], in.Now)
		if !concerned || before.State == Left {
			continue
		}
		p.decide(i)
		after, _ := Look(p.all[i], clusters[at], in.Now)
		after.Replicas = before.Replicas
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

// drained returns a cluster as it is once it is drained.
func drained(c *clusterv1alpha1.Cluster, now time.Time) *clusterv1alpha1.Cluster {
	out := *c
	out.Spec.Taints = slices.Clone(c.Spec.Taints)
	for _, taint := range Taints() {
		if slices.ContainsFunc(out.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			continue
		}
		if taint.Effect == corev1.TaintEffectNoExecute {
			taint.TimeAdded = &metav1.Time{Time: now}
		}
		out.Spec.Taints = append(out.Spec.Taints, taint)
	}
	out.ResourceVersion = "" // it is not what is stored
	return &out
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
	snap placement.Snapshot
	all  []workv1alpha2.Binding
	// loads are what was placed anew takes of clusters.
	loads map[string]*estimate.Load
}

// decide has one binding decided, and written where others see it.
func (p *planning) decide(i int) {
	b := p.all[i]
	snap := p.snap
	if placement.CapacityMatters(b.BindingSpec()) {
		snap = snap.WithReservations(p.loads)
	}
	in := placement.Situation{Clusters: snap, Peers: placement.PeersOf(b, p.all), Now: p.Now}
	decision, changed := placement.Decide(b, in, p.Scheduling)
	if !changed {
		return
	}
	after := b.DeepCopyObject().(workv1alpha2.Binding)
	decision.Put(after)
	p.all[i] = after
	p.take(b.BindingSpec(), after.BindingSpec())
}

// take counts what a binding runs more of in clusters than before.
func (p *planning) take(before, after *workv1alpha2.ResourceBindingSpec) {
	had := map[string]int32{}
	for _, t := range before.Clusters {
		had[t.Name] = placement.Units(before, t)
	}
	for _, t := range after.Clusters {
		load := placement.LoadOf(after, placement.Units(after, t)-had[t.Name])
		if sum := p.loads[t.Name]; sum != nil {
			load = sum.Plus(load)
		}
		if !load.IsZero() {
			p.loads[t.Name] = &load
		}
	}
}
