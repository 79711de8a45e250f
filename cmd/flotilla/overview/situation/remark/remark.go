package remark

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// Remark is one thing that is the matter with a cluster, or a Kustomization.
type Remark struct {
	// Passes says that it ends by itself.
	Passes bool
	// Message says what it is, and Next what to do, or where to look.
	Message, Next string
}

// Of returns what a cluster says of itself.
func Of(c *clusterv1alpha1.Cluster) []Remark {
	var out []Remark
	for _, r := range []struct {
		condition string
		of        func(name string, says metav1.Condition) Remark
	}{
		{clusterv1alpha1.ClusterConditionObjectsUnread, unread},
		{clusterv1alpha1.ClusterConditionMassFailureSuspected, lost},
		{clusterv1alpha1.ClusterConditionEvictionSlowed, slowed},
	} {
		says := meta.FindStatusCondition(c.Status.Conditions, r.condition)
		if says == nil || says.Status != metav1.ConditionTrue {
			continue
		}
		if r.condition == clusterv1alpha1.ClusterConditionObjectsUnread && !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady) {
			continue // of one that is not ready more is unread than some kinds
		}
		if r.condition == clusterv1alpha1.ClusterConditionMassFailureSuspected && isLost(c) {
			continue // NotReady says it
		}
		out = append(out, r.of(c.Name, *says))
	}
	return out
}

// isLost reports whether the cluster says that it is not ready.
func isLost(c *clusterv1alpha1.Cluster) bool {
	ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	return ready != nil && ready.Status != metav1.ConditionTrue
}

func unread(name string, says metav1.Condition) Remark {
	return Remark{Message: says.Message, Next: "see that the fleet's account may read there, and that nothing in between ends its watches: flotilla describe cluster " + name}
}

func lost(_ string, says metav1.Condition) Remark {
	found, next, _ := strings.Cut(says.Message, ". If ")
	return Remark{Message: found, Next: "if " + next}
}

// example is what is named of those that are not healthy where they were moved to.
var example = regexp.MustCompile(`, such as (\S+) (?:(\S+)/)?([^\s/:]+):`)

func slowed(_ string, says metav1.Condition) Remark {
	next := "see what keeps them from being healthy"
	if of := example.FindStringSubmatch(says.Message); of != nil {
		next += ": flotilla explain " + strings.ToLower(of[1]) + "/" + of[3]
		if of[2] != "" {
			next += " -n " + of[2]
		}
	}
	return Remark{Passes: true, Message: "what runs there is moved off slowly: " + says.Message, Next: next + "; the rate rises by itself once they are"}
}
