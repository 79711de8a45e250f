package explain

import (
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// deliver explains how the template gets to its clusters, and what they report of it.
func (x *explainer) deliver() {
	if x.out.Placement == nil || x.in.blind(UnreadReports) {
		return
	}
	d := &Delivery{Conflicts: string(policyv1alpha1.ConflictAbort), AsReported: x.in.blind(UnreadClusters)}
	if spec := x.binding.BindingSpec(); spec.ConflictResolution == policyv1alpha1.ConflictOverwrite {
		d.Conflicts = string(policyv1alpha1.ConflictOverwrite)
	}
	d.Suspended = plan.SuspendedAll(x.binding.BindingSpec())
	d.Preserved = ptr.Deref(x.binding.BindingSpec().PreserveResourcesOnDeletion, false)
	byCluster := map[string]*Delivered{}
	of := func(cluster string) *Delivered {
		if byCluster[cluster] == nil {
			byCluster[cluster] = &Delivered{Cluster: cluster, Leaving: true}
		}
		return byCluster[cluster]
	}
	for i := range x.works {
		work, c := x.works[i].Work, &Delivered{}
		if work == nil {
			continue
		}
		if !x.out.Placement.overQuota() || slices.Contains(plan.Keeps(plan.SpecOf(x.in.Binding)), x.works[i].Cluster) {
			c = of(x.works[i].Cluster) // a Work for another cluster would be what the quota refuses
		}
		deliverWork(d, c, work)
	}
	x.out.Delivery = d
	if x.in.Binding == nil {
		return
	}
	kind := x.in.Template.GroupVersionKind().GroupKind()
	for _, item := range x.in.items() {
		c := of(item.ClusterName)
		c.Applied, c.Message, c.Health = ptr.To(item.Applied), item.AppliedMessage, rollup.HealthText(kind, item.Health, item.Status)
		c.Ails = x.in.Symptoms[item.ClusterName].Text
	}
	part := rollup.PartOf(x.in.Template, x.in.Binding, x.in.Works, nil)
	for _, in := range slices.Concat(part.Clusters, part.Former) {
		of(in.Name).judged(in, part.State == rollup.Healthy, rollup.Released(x.in.Binding))
	}
	// Every cluster that has the template, or should, gets a line, whether or not it has reported anything.
	wanted := plan.SpecOf(x.in.Binding)
	for _, cluster := range plan.Keeps(wanted) {
		of(cluster)
	}
	if x.plan.Binding != nil && !x.in.blind(UnreadClusters) && !x.out.Placement.overQuota() {
		wanted = plan.SpecOf(x.plan.Binding)
	}
	for _, target := range plan.Targets(wanted) {
		of(target.Name).Leaving = false
	}
	away := map[string]bool{}
	for _, cluster := range x.in.Clusters {
		if s, silent := rollup.SilenceOf(cluster); silent && byCluster[cluster.Name] != nil {
			byCluster[cluster.Name].Silent, away[cluster.Name] = s.For(x.in.Now), s.Away
		}
	}
	silent := func(cluster string) bool { return of(cluster).Silent != "" }
	for _, kept := range eviction.KeptBy(wanted) {
		of(kept.Cluster).Kept = "kept " + kept.While(func(cluster string) bool { return away[cluster] }).Timed(x.in.Binding, x.in.Now, silent).Condition()
	}
	for _, cluster := range slices.Sorted(maps.Keys(byCluster)) {
		d.Clusters = append(d.Clusters, *byCluster[cluster])
	}
	x.deliveryProblems()
}

// judged adds what is known about the version that the cluster runs. placed means
// that the template is placed as wanted, released that no policy carries it.
func (c *Delivered) judged(in rollup.ClusterPart, placed, released bool) {
	if in.Strayed || in.Reason == rollup.Recalled {
		c.Message = in.Reason
	}
	if !in.Outdated || c.Applied == nil || !*c.Applied {
		return
	}
	c.Applied, c.Outdated, c.Stays = nil, true, released
	if c.Message = "the version before runs there"; placed {
		c.Message = in.Reason
	}
}

// deliverWork adds what a planned Work shows about how the template is delivered.
func deliverWork(d *Delivery, c *Delivered, work *workv1alpha1.Work) {
	c.Suspended = ptr.Deref(work.Spec.SuspendDispatching, false)
	d.Preserved = d.Preserved || ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false)
	d.Conflicts = string(policyv1alpha1.ConflictAbort)
	if work.Annotations[workv1alpha2.ResourceConflictResolutionAnnotation] == workv1alpha2.ResourceConflictResolutionOverwrite {
		d.Conflicts = string(policyv1alpha1.ConflictOverwrite)
	}
}

// items returns the statuses that clusters report: those of the Works where they
// were read, or else those on the binding.
func (in *Input) items() []workv1alpha2.AggregatedStatusItem {
	switch {
	case in.Works != nil:
		return rollup.ItemsOf(in.Binding, in.Works, in.overdue)
	case in.Binding != nil:
		return in.Binding.BindingStatus().AggregatedStatus
	default:
		return nil
	}
}

// overdue reports whether the binding marks a Work's cluster as overdue, and the Work is still behind.
func (in *Input) overdue(work *workv1alpha1.Work) bool {
	return in.Binding != nil && rollup.Behind(work) && rollup.SaysOverdue(in.Binding.BindingStatus().AggregatedStatus, work)
}
