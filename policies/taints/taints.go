// Package taints says which taints a Cluster should have by all
// ClusterTaintPolicies.
//
// In go the policies, one Cluster and the time; out come its taints, and which of
// them are added and removed. Policies count from the oldest to the newest, and
// what a later one says of a taint holds. A taint is known by its key and effect: one
// that the Cluster has keeps its value and its time, and one that no policy says
// anything of stays. The package changes nothing that it is given, and never asks who
// put a taint on.
package taints

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/policies/validate/syntax"
)

// A Decision is what a Cluster's taints should be.
type Decision struct {
	// Taints are all of them: those that stay in the order that they have, and then
	// those that are added.
	Taints []corev1.Taint
	// Added are those that the Cluster has not, Removed those that it has no longer.
	Added, Removed []corev1.Taint
}

// Changed reports whether there is something to write.
func (d *Decision) Changed() bool { return len(d.Added) > 0 || len(d.Removed) > 0 }

// String says what is added and removed, for people.
func (d *Decision) String() string {
	var parts []string
	for _, part := range []struct {
		what   string
		taints []corev1.Taint
	}{{"added ", d.Added}, {"removed ", d.Removed}} {
		if len(part.taints) > 0 {
			parts = append(parts, part.what+list(part.taints))
		}
	}
	return strings.Join(parts, "; ")
}

func list(taints []corev1.Taint) string {
	texts := make([]string, len(taints))
	for i := range taints {
		texts[i] = taints[i].ToString()
	}
	return strings.Join(texts, ", ")
}

// Decide returns the taints that the cluster should have. What is added is dated now.
func Decide(policies []policyv1alpha1.ClusterTaintPolicy, cluster *clusterv1alpha1.Cluster, now time.Time) Decision {
	say := verdicts{of: map[identity]verdict{}}
	statuses := statusesOf(cluster)
	for _, p := range inOrder(policies) {
		if !selector.Cluster(cluster, p.Spec.TargetClusters) {
			continue
		}
		if allMatch(p.Spec.AddOnConditions, statuses) {
			say.add(p.Spec.Taints)
		}
		if allMatch(p.Spec.RemoveOnConditions, statuses) {
			say.remove(p.Spec.Taints)
		}
	}
	return say.on(cluster.Spec.Taints, now)
}

// inOrder returns the policies from the oldest to the newest.
func inOrder(policies []policyv1alpha1.ClusterTaintPolicy) []*policyv1alpha1.ClusterTaintPolicy {
	out := make([]*policyv1alpha1.ClusterTaintPolicy, len(policies))
	for i := range policies {
		out[i] = &policies[i]
	}
	slices.SortFunc(out, func(a, b *policyv1alpha1.ClusterTaintPolicy) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// statusesOf returns the statuses of a cluster's conditions by their types.
func statusesOf(cluster *clusterv1alpha1.Cluster) map[string]metav1.ConditionStatus {
	out := make(map[string]metav1.ConditionStatus, len(cluster.Status.Conditions))
	for _, c := range cluster.Status.Conditions {
		if _, twice := out[c.Type]; !twice {
			out[c.Type] = c.Status
		}
	}
	return out
}

// allMatch reports whether all conditions are met. None at all never are.
func allMatch(conditions []policyv1alpha1.MatchCondition, statuses map[string]metav1.ConditionStatus) bool {
	for i := range conditions {
		if !matches(&conditions[i], statuses) {
			return false
		}
	}
	return len(conditions) > 0
}

func matches(c *policyv1alpha1.MatchCondition, statuses map[string]metav1.ConditionStatus) bool {
	status, known := statuses[c.ConditionType]
	if !known {
		return false
	}
	listed := slices.Contains(c.StatusValues, status)
	switch c.Operator {
	case policyv1alpha1.MatchConditionOpIn:
		return listed
	case policyv1alpha1.MatchConditionOpNotIn:
		return !listed
	default:
		return false
	}
}

// identity is what a taint is known by.
type identity struct {
	key    string
	effect corev1.TaintEffect
}

// verdict is what is to become of a taint.
type verdict struct {
	wanted bool
	at     int // in the order of additions, if it is wanted
}

// verdicts are those of all policies so far.
type verdicts struct {
	of    map[identity]verdict
	added []policyv1alpha1.Taint // in order; of one that is removed later, too
}

// add has taints on the cluster. The first one that says so since the taint was
// removed gives the value.
func (v *verdicts) add(taints []policyv1alpha1.Taint) {
	for i := range taints {
		id := identity{taints[i].Key, taints[i].Effect}
		if v.of[id].wanted || !takes(&taints[i]) {
			continue
		}
		v.of[id] = verdict{wanted: true, at: len(v.added)}
		v.added = append(v.added, taints[i])
	}
}

// takes reports whether a cluster can have the taint. One that it cannot would have all
// others refused with it.
func takes(t *policyv1alpha1.Taint) bool {
	return (t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute) &&
		len(syntax.LabelName(t.Key, nil)) == 0 && len(syntax.LabelValue(t.Value, nil)) == 0
}

// remove has taints off the cluster.
func (v *verdicts) remove(taints []policyv1alpha1.Taint) {
	for _, t := range taints {
		v.of[identity{t.Key, t.Effect}] = verdict{}
	}
}

// on returns what the verdicts make of the taints that there are.
func (v *verdicts) on(current []corev1.Taint, now time.Time) Decision {
	var d Decision
	has := make(map[identity]bool, len(current))
	for _, t := range current {
		id := identity{t.Key, t.Effect}
		has[id] = true
		if is, judged := v.of[id]; judged && !is.wanted {
			d.Removed = append(d.Removed, t)
			continue
		}
		d.Taints = append(d.Taints, t)
	}
	for i, t := range v.added {
		id := identity{t.Key, t.Effect}
		if is := v.of[id]; !is.wanted || is.at != i || has[id] {
			continue
		}
		at := metav1.NewTime(now)
		d.Added = append(d.Added, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect, TimeAdded: &at})
	}
	d.Taints = append(d.Taints, d.Added...)
	return d
}
