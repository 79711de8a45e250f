package drain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// State is how far a template has left a cluster.
type State string

// States of a template.
const (
	// Waits is one that is to go, and about which nothing is decided yet.
	Waits State = "Waits"
	// Leaves is one that has another place. The old copy is kept until the new ones do well.
	Leaves State = "Leaves"
	// Left is one that was moved off the cluster.
	Left State = "Left"
	// Stays is one that does not go, as somebody wants it so.
	Stays State = "Stays"
	// Refused is one whose move was refused: there is no other place, or none that it may take, or the new one does
	// not take it. It stays until somebody does something about that.
	Refused State = "Refused"
	// Finished is one that has come to its end there, and is not moved: it would run once more.
	Finished State = "Finished"
	// Gone is one that was deleted while the cluster was drained.
	Gone State = "Gone"
)

// Row is what becomes of one template.
type Row struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	State      State  `json:"state"`
	// Replicas run in the cluster, by the placement; 0 where they are not counted.
	Replicas int32 `json:"replicas,omitempty"`
	// To is where it runs once it has left.
	To []workv1alpha2.TargetCluster `json:"to,omitempty"`
	// RunsOn says that all of that ran already before it left, and no less: it only leaves.
	RunsOn bool `json:"runsOn,omitempty"`
	// Unready are those of To that are not ready, or not heard of; empty where all are.
	Unready []string `json:"unready,omitempty"`
	// Lacks is what those of To lack for it, in words, as far as a plan has found out: the old copy stays while they do.
	Lacks string `json:"lacks,omitempty"`
	// Data is what becomes of the data in its volumes, in words; empty where it has none that is known of.
	Data string `json:"data,omitempty"`
	// Why it stays or waits, or what its old copy waits for, in words.
	Why string `json:"why,omitempty"`
	// Next is what somebody can do about it.
	Next string `json:"next,omitempty"`
}

// Title is "Deployment shop/web".
func (r *Row) Title() string {
	return r.Kind + " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
}

// Key distinguishes the row from those of other templates.
func (r *Row) Key() string {
	group, _, _ := strings.Cut(r.APIVersion, "/")
	return group + " " + r.Title()
}

// Says is why it stays or waits, and that its move is refused where it is.
func (r *Row) Says() string {
	if r.State == Refused {
		return "refused: " + r.Why
	}
	return r.Why
}

// Places returns where it runs once it has left, as "north=2, west=1".
func (r *Row) Places() string {
	parts := make([]string, len(r.To))
	for i, t := range r.To {
		parts[i] = Place(t.Name, t.Replicas)
	}
	return strings.Join(parts, ", ")
}

// Goes says where it goes as it leaves: "for west=2", or, where it ran already, "and runs on in west=2".
func (r *Row) Goes() string {
	if r.RunsOn {
		return "and runs on in " + r.Places()
	}
	return "for " + r.Places()
}

// Place is "west=1", and "west" for what has no replicas.
func Place(cluster string, replicas int32) string {
	if replicas == 0 {
		return cluster
	}
	return cluster + "=" + strconv.Itoa(int(replicas))
}

// RowOf returns how far a binding has left a cluster that is drained, and false where it has nothing
// to do with it.
func RowOf(b workv1alpha2.Binding, cluster *clusterv1alpha1.Cluster, now time.Time) (Row, bool) {
	spec := b.BindingSpec()
	row := Row{APIVersion: spec.Resource.APIVersion, Kind: spec.Resource.Kind, Namespace: spec.Resource.Namespace, Name: spec.Resource.Name}
	for _, t := range spec.Clusters {
		if t.Name == cluster.Name {
			row.Replicas = t.Replicas
			row.stands(b, cluster, now)
			return row, true
		}
	}
	row.To = slices.Clone(spec.Clusters)
	record, _ := placement.RecordOf(b)
	move := record.LastMove
	row.RunsOn = len(row.To) > 0 && move != nil && len(move.To) == 0 && slices.Contains(move.From, cluster.Name)
	for i := range spec.GracefulEvictionTasks {
		if task := &spec.GracefulEvictionTasks[i]; task.FromCluster == cluster.Name {
			row.leaves(b, i, failover.Away(cluster), now)
			return row, true
		}
	}
	if listed(b, cluster.Name) && !Required(b, cluster.Name) {
		row.State, row.Why = Leaves, "the old copy goes"
		return row, true
	}
	row.State = Left
	return row, slices.Contains(record.Drained, cluster.Name)
}

// Doubt adds which of the clusters that a template leaves for are not ready: placement keeps it in such a one if it is
// placed there already, or its policy tolerates that. silent are the clusters that are not heard of.
func (r *Row) Doubt(silent rollup.Silences) {
	if r.State != Leaves {
		return
	}
	text := ""
	if r.Unready, text = silent.Among(r.To); text != "" {
		r.Why = strings.TrimPrefix(r.Why+", and "+text, ", and ")
	}
}

// listed reports whether the status of a binding counts a copy in the cluster.
func listed(b workv1alpha2.Binding, cluster string) bool {
	return slices.ContainsFunc(b.BindingStatus().AggregatedStatus, func(item workv1alpha2.AggregatedStatusItem) bool {
		return item.ClusterName == cluster
	})
}

// Required reports whether others need a template in the cluster: it goes when they do.
func Required(b workv1alpha2.Binding, cluster string) bool {
	return slices.ContainsFunc(b.BindingSpec().RequiredBy, func(by workv1alpha2.BindingSnapshot) bool {
		return slices.ContainsFunc(by.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster })
	})
}

// leaves fills in what an eviction task of a binding waits for.
func (r *Row) leaves(b workv1alpha2.Binding, at int, away bool, now time.Time) {
	spec := b.BindingSpec()
	task := &spec.GracefulEvictionTasks[at]
	r.State, r.Why = Leaves, "the old copy goes"
	if task.Replicas != nil {
		r.Replicas = *task.Replicas
	}
	for _, kept := range eviction.KeptBy(spec) {
		switch {
		case kept.Cluster != task.FromCluster:
		case kept.Asked:
			r.State, r.Why = Stays, "somebody wants the old copy to be kept"
			r.Next = giveUp(b, at)
			return
		default:
			r.Why = "kept " + kept.While(func(string) bool { return away }).Condition()
			r.Next = "see what keeps that from it: " + r.explain() + thenGiveUp + giveUp(b, at)
			if why := refusal(b, task, kept, now); why != "" {
				r.State, r.Why = Refused, why
			}
		}
	}
	if why := ungiven(b, r.To); r.State == Leaves && why != "" {
		r.State, r.Why, r.Next = Refused, why, r.explain()
	}
}

// stands fills in why a template is placed in the cluster still.
func (r *Row) stands(b workv1alpha2.Binding, cluster *clusterv1alpha1.Cluster, now time.Time) {
	spec := b.BindingSpec()
	r.State = Waits
	record, _ := placement.RecordOf(b)
	ends, limited := tolerated(spec, cluster, now)
	switch {
	case b.GetDeletionTimestamp() != nil:
		r.State, r.Why = Leaves, "it is being deleted"
	case slices.Contains(failover.Finished(b), cluster.Name):
		r.State, r.Why = Finished, "it has finished there ("+failover.Ended(b, cluster.Name)+"), and stays as a record"
		r.Next = "delete it before " + cluster.Name + " leaves the fleet, or it runs once more elsewhere: flotilla delete " + r.resource()
	case !failover.Drains(cluster):
	case !limited:
		r.State, r.Why = Stays, "its policy tolerates the taint "+clusterv1alpha1.TaintClusterDrain
		r.Next = "take that out of clusterTolerations of " + policyOf(b) + ", or delete " + r.Title()
	case undecided(r, b):
	case ends.After(now):
		r.Why = "its policy tolerates the drain until " + ends.UTC().Format(time.TimeOnly) + " UTC"
	case stays(record, cluster.Name):
		r.State, r.Why = Refused, reasonOf(record)
		r.Next = r.remedy(record, b)
	case record.Reason != "" && !record.Succeeded() && since(record, cluster, now):
		r.State, r.Why = Refused, strings.TrimSuffix(record.Message, ".")
		r.Next = r.remedy(record, b)
	}
}

// remedy is what can be done about a template that cannot leave.
func (r *Row) remedy(record placement.Record, b workv1alpha2.Binding) string {
	switch {
	case record.Reason == workv1alpha2.BindingReasonQuotaExceeded:
		return "raise the quota, or ask for less: flotilla get federatedresourcequotas -n " + r.Namespace
	case strings.HasPrefix(r.Why, noPlace) && strings.Contains(r.Why, noneFits):
		return "give " + policyOf(b) + " another cluster; what each says: " + r.explain()
	case strings.HasPrefix(r.Why, noPlace):
		return "make room for it, or give " + policyOf(b) + " another cluster; what each says: " + r.explain()
	}
	return r.explain()
}

// tolerated returns until when the policy tolerates the drain, and false where for ever.
func tolerated(spec *workv1alpha2.ResourceBindingSpec, cluster *clusterv1alpha1.Cluster, now time.Time) (time.Time, bool) {
	if spec.Placement == nil {
		return now, true
	}
	return failover.ToleratesDrain(cluster, spec.Placement.ClusterTolerations, now)
}

// stays reports whether it was decided that a template cannot leave the cluster, knowing of the drain or whatever
// it is for. What stays for another cause alone is yet to be decided.
func stays(record placement.Record, cluster string) bool {
	if record.Stays == nil || !slices.Contains(record.Stays.Clusters, cluster) {
		return false
	}
	return strings.Contains(record.Stays.Message, "{"+clusterv1alpha1.TaintClusterDrain) || strings.Contains(record.Stays.Message, "It stays in "+cluster+": ")
}

// reasonOf returns why there is no other place, or none that it may take.
func reasonOf(record placement.Record) string {
	if _, why, cut := strings.Cut(record.Stays.Message, noPlace); cut {
		return noPlace + strings.TrimSuffix(why, ".")
	}
	if record.Reason == workv1alpha2.BindingReasonQuotaExceeded {
		return strings.TrimSuffix(record.Message, ".")
	}
	return strings.TrimSuffix(record.Stays.Message, ".")
}

const (
	// noPlace begins to say why there is no other place.
	noPlace = "no other place: "
	// noneFits says that the clusters do not fit, whatever room they have; see unfit.Error.
	noneFits = " clusters are available: "
)

// unsettled is for how long a decision of the second in which a drain began may be one that knew nothing of it: times are kept in
// seconds.
const unsettled = 5 * time.Second

// since reports whether a decision was made while the cluster was drained.
func since(record placement.Record, cluster *clusterv1alpha1.Cluster, now time.Time) bool {
	for i := range cluster.Spec.Taints {
		if t := &cluster.Spec.Taints[i]; t.Key == clusterv1alpha1.TaintClusterDrain && t.TimeAdded != nil {
			return record.At.After(t.TimeAdded.Time) || record.At.Equal(t.TimeAdded) && now.Sub(t.TimeAdded.Time) >= unsettled
		}
	}
	return true
}

// explain is the command that says more.
func (r *Row) explain() string { return "flotilla explain " + r.resource() }

// thenGiveUp is before the command that gives an old copy up.
const thenGiveUp = "; to give the old copy up: "

// Brief returns Next of a row without the command that gives an old copy up, which only scripts have room for, and whether there is one.
func Brief(r *Row) (next string, givesUp bool) {
	if strings.HasPrefix(r.Next, patches) {
		return "", true
	}
	next, _, givesUp = strings.Cut(r.Next, thenGiveUp)
	return next, givesUp
}

// patches begins the command that gives an old copy up.
const patches = "flotilla kubectl patch "

// ObjectOf names the template of a row for a command that takes KIND/NAME.
func ObjectOf(r *Row) string { return r.resource() }

// resource names the template for a command.
func (r *Row) resource() string {
	kind := strings.ToLower(r.Kind)
	if group, _, _ := strings.Cut(r.APIVersion, "/"); strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") {
		kind += "." + group // others may have a kind of this name
	}
	out := kind + "/" + r.Name
	if r.Namespace != "" {
		out += " -n " + r.Namespace
	}
	return out
}

// policyOf names the policy that carries a binding's template.
func policyOf(b workv1alpha2.Binding) string {
	switch ref, claimed := propagation.Claimed(b); {
	case !claimed:
		return "its policy"
	case ref.Namespace == "":
		return "ClusterPropagationPolicy " + ref.Name
	default:
		return "PropagationPolicy " + ref.Namespace + "/" + ref.Name
	}
}

// giveUp is the command that lets the copy of an eviction task go. It changes no other task that has come into its place.
func giveUp(b workv1alpha2.Binding, at int) string {
	binding := "clusterresourcebinding " + b.GetName()
	if b.GetNamespace() != "" {
		binding = "resourcebinding " + b.GetName() + " -n " + b.GetNamespace()
	}
	return patches + fmt.Sprintf(`%s --type json -p '[{"op":"test","path":"/spec/gracefulEvictionTasks/%d/fromCluster","value":%q},{"op":"add","path":"/spec/gracefulEvictionTasks/%[2]d/suppressDeletion","value":false}]'`,
		binding, at, b.BindingSpec().GracefulEvictionTasks[at].FromCluster)
}
