package drain

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// taints returns those that the cluster of a plan is to have.
func (in *Input) taints() []corev1.Taint {
	if in.Taints != nil {
		return in.Taints
	}
	return Taints()
}

// endures fills in why a template stays in a cluster that has taints of which none is that of a drain, or when it leaves.
func (p *planning) endures(row *Row, b workv1alpha2.Binding, cluster *clusterv1alpha1.Cluster) {
	spec := b.BindingSpec()
	var tolerations []corev1.Toleration
	if spec.Placement != nil {
		tolerations = spec.Placement.ClusterTolerations
	}
	leaving, leaves := p.Scheduling.Failover.Leaves(cluster, tolerations, p.Now)
	record, _ := placement.RecordOf(b)
	switch {
	case !p.Scheduling.Failover.Taints:
		row.State, row.Why = Stays, "failover is off"
	case !leaves:
		row.State, row.Why = Stays, "its policy tolerates the taint"
	case undecided(row, b):
	case leaving.Stays != "":
		row.State, row.Why = Stays, leaving.Stays
	case leaving.At.After(p.Now):
		row.Why = leaving.Text(p.Now)
	case record.Stays != nil && slices.Contains(record.Stays.Clusters, cluster.Name):
		row.State, row.Why = Refused, reasonOf(record)
		row.Next = row.remedy(record, b)
	case record.Reason == workv1alpha2.BindingReasonQuotaExceeded:
		row.State, row.Why = Refused, strings.TrimSuffix(record.Message, ".")
		row.Next = row.remedy(record, b)
	}
}

// undecided reports whether nobody decides where a row's template goes, and fills in why it stays for that.
func undecided(r *Row, b workv1alpha2.Binding) bool {
	spec := b.BindingSpec()
	switch {
	case spec.Suspension != nil && spec.Suspension.Scheduling != nil && *spec.Suspension.Scheduling:
		r.State, r.Why, r.Next = Stays, "its scheduling is suspended", "set suspension.scheduling: false in "+policyOf(b)
	case !placement.Mine(b, spec.SchedulerName):
		r.State, r.Why, r.Next = Stays, "no policy carries it", "have a policy carry it, or delete "+r.Title()+"; how policies see it: "+r.explain()
	default:
		return false
	}
	return true
}
