// Package whatif makes Clusters as they would be, so that a decision about them can be seen before it is taken.
//
// In go a Cluster as it is, the ClusterTaintPolicies and a time; out comes a copy as the loops would have it by then:
// lost, or with taints. Or in go all Clusters, and words for what happens to them, such as "eu-3:down"; out come the
// Clusters as they are in the end, and what there is to say of that. What joins is a Cluster of the caller's own. The
// copies go wherever Clusters go: into placement.NewSnapshot and plan.FleetInput. Nothing is ever read or stored, and
// nothing that it is given is changed.
package whatif

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/taints"
)

// Down returns the cluster as it is when it does not answer since a time: not ready, with the taints that follow from
// that and from the policies. Whether anything is moved off it is for those, and for what placements tolerate.
func Down(c *clusterv1alpha1.Cluster, policies []policyv1alpha1.ClusterTaintPolicy, since time.Time) *clusterv1alpha1.Cluster {
	out := changed(c)
	out.Status.Conditions = slices.Clone(c.Status.Conditions)
	meta.SetStatusCondition(&out.Status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(since),
		Reason: clusterv1alpha1.ClusterNotReachableReason, Message: clusterv1alpha1.ClusterNotReachableMessage,
	})
	ready := meta.FindStatusCondition(out.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	out.Spec.Taints = taints.ByReadiness(out.Spec.Taints, ready, metav1.NewTime(since))
	out.Spec.Taints = taints.Decide(policies, out, since).Taints
	return out
}

// Tainted returns the cluster with more taints, those with the effect NoExecute dated since a time. One that it has
// stays as it is.
func Tainted(c *clusterv1alpha1.Cluster, since time.Time, more ...corev1.Taint) *clusterv1alpha1.Cluster {
	out := changed(c)
	for _, taint := range more {
		if slices.ContainsFunc(out.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			continue
		}
		if taint.Effect == corev1.TaintEffectNoExecute {
			taint.TimeAdded = &metav1.Time{Time: since}
		}
		out.Spec.Taints = append(out.Spec.Taints, taint)
	}
	return out
}

// changed returns a copy whose taints may be changed; it is not what is stored.
func changed(c *clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster {
	out := *c
	out.ResourceVersion = ""
	out.Spec.Taints = slices.Clone(c.Spec.Taints)
	return &out
}
