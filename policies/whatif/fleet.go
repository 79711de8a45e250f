package whatif

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/taints"
)

// patience is how long ago everything has begun that events begin: longer than any toleration that ends.
const patience = 101 * 365 * 24 * time.Hour

// Fleet is the clusters as they are, and by what policies they get taints.
type Fleet struct {
	Clusters []*clusterv1alpha1.Cluster
	Policies []policyv1alpha1.ClusterTaintPolicy
	Now      time.Time
}

// UnknownError says that an event is about a cluster that the fleet does not have.
type UnknownError struct {
	// Name is the one of the event, and Clusters are the names of those that there are, sorted.
	Name     string
	Clusters []string
}

// Error returns a text without a suggestion.
func (e *UnknownError) Error() string { return "there is no cluster " + e.Name }

// After returns the clusters as they are once the events have happened, one after the other, and lasted for so long that no
// toleration of them lasts on. A cluster that is removed is leaving: what runs there is to go. One that is lost already is
// lost for as much longer.
//
// Errors: an *UnknownError, and others about the words of an event.
func (f Fleet) After(events []Event) ([]*clusterv1alpha1.Cluster, error) {
	out := slices.Clone(f.Clusters)
	if slices.ContainsFunc(events, Event.Loses) {
		for i, c := range out {
			if failover.Lost(c) {
				out[i] = aged(c)
			}
		}
	}
	touched := map[string]bool{}
	for _, e := range events {
		at := slices.IndexFunc(out, func(c *clusterv1alpha1.Cluster) bool { return c.Name == e.cluster })
		switch {
		case e.does == joins && at >= 0:
			return nil, fmt.Errorf("%s names the cluster %s, which is in the fleet already", e, e.cluster)
		case e.does == joins:
			out = append(out, joined(e.joining, out, f.since()))
		case at < 0:
			return nil, &UnknownError{Name: e.cluster, Clusters: namesOf(out)}
		default:
			c, err := f.happens(out[at], e)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", e, err)
			}
			out[at] = c
		}
		touched[e.cluster] = true
	}
	for i, c := range out {
		if touched[c.Name] && len(f.Policies) > 0 {
			c = changed(c)
			c.Spec.Taints = taints.Decide(f.Policies, c, f.since()).Taints
			out[i] = c
		}
	}
	return out, nil
}

// since is when events have begun.
func (f Fleet) since() time.Time { return f.Now.Add(-patience) }

// happens returns a cluster after one event.
func (f Fleet) happens(c *clusterv1alpha1.Cluster, e Event) (*clusterv1alpha1.Cluster, error) {
	cordon := corev1.Taint{Key: clusterv1alpha1.TaintClusterUnscheduler, Effect: corev1.TaintEffectNoSchedule}
	switch e.does {
	case isDown:
		out := Down(c, f.Policies, f.since())
		out.Annotations = maps.Clone(c.Annotations)
		delete(out.Annotations, clusterv1alpha1.ConfirmLostAnnotation) // of an earlier loss
		return out, nil
	case isDrained:
		return Tainted(c, f.since(), cordon, failover.DrainTaint()), nil
	case isCordoned:
		return Tainted(c, f.since(), cordon), nil
	case isTainted:
		return Tainted(untainted(c, e.taint), f.since(), e.taint), nil
	case isLabelled:
		out := changed(c)
		if out.Labels = maps.Clone(c.Labels); e.gone {
			delete(out.Labels, e.key)
			return out, nil
		}
		if out.Labels == nil {
			out.Labels = map[string]string{}
		}
		out.Labels[e.key] = e.value
		return out, nil
	case hasCapacity:
		return resized(c, e)
	default:
		out := changed(c)
		out.DeletionTimestamp = &metav1.Time{Time: f.Now}
		return out, nil
	}
}

// untainted returns a cluster without a taint of that key and effect: another value takes its place.
func untainted(c *clusterv1alpha1.Cluster, taint corev1.Taint) *clusterv1alpha1.Cluster {
	out := changed(c)
	out.Spec.Taints = slices.DeleteFunc(out.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) && t.Value != taint.Value })
	return out
}

// aged returns a cluster that is lost as one that is lost for as much longer as events last.
func aged(c *clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster {
	out := changed(c)
	out.Status.Conditions = slices.Clone(c.Status.Conditions)
	for i := range out.Status.Conditions {
		of := &out.Status.Conditions[i]
		if of.Type == clusterv1alpha1.ClusterConditionReady || of.Type == clusterv1alpha1.ClusterConditionMassFailureSuspected {
			of.LastTransitionTime = metav1.NewTime(of.LastTransitionTime.Add(-patience))
		}
	}
	for i := range out.Spec.Taints {
		if at := out.Spec.Taints[i].TimeAdded; at != nil {
			out.Spec.Taints[i].TimeAdded = &metav1.Time{Time: at.Add(-patience)}
		}
	}
	return out
}

// joined returns a cluster that is ready. Where its manifest does not say what it serves that is what all others do.
func joined(c *clusterv1alpha1.Cluster, others []*clusterv1alpha1.Cluster, since time.Time) *clusterv1alpha1.Cluster {
	out := changed(c)
	out.DeletionTimestamp = nil
	out.Status.Conditions = slices.Clone(c.Status.Conditions)
	meta.SetStatusCondition(&out.Status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(since), Reason: clusterv1alpha1.ClusterReadyReason,
	})
	out.Spec.Taints = taints.ByReadiness(out.Spec.Taints, meta.FindStatusCondition(out.Status.Conditions, clusterv1alpha1.ClusterConditionReady), metav1.NewTime(since))
	if len(out.Status.APIEnablements) == 0 {
		out.Status.APIEnablements = servedByAll(others)
	}
	return out
}

// servedByAll returns the kinds that all clusters serve which tell what they serve.
func servedByAll(clusters []*clusterv1alpha1.Cluster) []clusterv1alpha1.APIEnablement {
	told := slices.DeleteFunc(slices.Clone(clusters), func(c *clusterv1alpha1.Cluster) bool { return len(c.Status.APIEnablements) == 0 })
	if len(told) == 0 {
		return nil
	}
	serves := func(c *clusterv1alpha1.Cluster, version, kind string) bool {
		return slices.ContainsFunc(c.Status.APIEnablements, func(e clusterv1alpha1.APIEnablement) bool {
			return e.GroupVersion == version && slices.ContainsFunc(e.Resources, func(r clusterv1alpha1.APIResource) bool { return r.Kind == kind })
		})
	}
	var out []clusterv1alpha1.APIEnablement
	for _, e := range told[0].Status.APIEnablements {
		resources := slices.DeleteFunc(slices.Clone(e.Resources), func(r clusterv1alpha1.APIResource) bool {
			return slices.ContainsFunc(told[1:], func(c *clusterv1alpha1.Cluster) bool { return !serves(c, e.GroupVersion, r.Kind) })
		})
		if len(resources) > 0 {
			out = append(out, clusterv1alpha1.APIEnablement{GroupVersion: e.GroupVersion, Resources: resources})
		}
	}
	return out
}

func namesOf(clusters []*clusterv1alpha1.Cluster) []string {
	out := make([]string, len(clusters))
	for i, c := range clusters {
		out[i] = c.Name
	}
	slices.Sort(out)
	return out
}
