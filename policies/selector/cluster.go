package selector

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// Field keys that a cluster's field selector may name.
const (
	FieldProvider = "provider"
	FieldRegion   = "region"
	FieldZone     = "zone"
)

// Clusters is a cluster affinity made ready to be asked about many clusters.
// The zero value matches every cluster.
type Clusters struct {
	affinity *policyv1alpha1.ClusterAffinity
	labels   labels.Selector
}

// Compile makes a ready. A nil affinity matches every cluster. It fails where
// the label selector cannot be parsed.
func Compile(a *policyv1alpha1.ClusterAffinity) (Clusters, error) {
	if a == nil || a.LabelSelector == nil {
		return Clusters{affinity: a}, nil
	}
	sel, err := metav1.LabelSelectorAsSelector(a.LabelSelector)
	if err != nil {
		return Clusters{}, fmt.Errorf("label selector of a cluster affinity: %w", err)
	}
	return Clusters{affinity: a, labels: sel}, nil
}

// Matches reports whether c is meant. All parts of the affinity must agree;
// exclusion wins.
func (m Clusters) Matches(c *clusterv1alpha1.Cluster) bool {
	a := m.affinity
	switch {
	case a == nil:
		return true
	case slices.Contains(a.ExcludeClusters, c.Name):
		return false
	case len(a.ClusterNames) > 0 && !slices.Contains(a.ClusterNames, c.Name):
		return false
	case m.labels != nil && !m.labels.Matches(labels.Set(c.Labels)):
		return false
	default:
		return a.FieldSelector == nil || matchFields(a.FieldSelector.MatchExpressions, c)
	}
}

// Cluster reports whether a means c. A nil affinity means every cluster, one that
// cannot be parsed none.
func Cluster(c *clusterv1alpha1.Cluster, a *policyv1alpha1.ClusterAffinity) bool {
	m, err := Compile(a)
	return err == nil && m.Matches(c)
}

// Placement reports whether a placement means c by any of its affinities, also by one that is not in force. A nil placement means
// every cluster.
func Placement(c *clusterv1alpha1.Cluster, p *policyv1alpha1.Placement) bool {
	if p == nil || len(p.ClusterAffinities) == 0 {
		return p == nil || Cluster(c, p.ClusterAffinity)
	}
	return slices.ContainsFunc(p.ClusterAffinities, func(term policyv1alpha1.ClusterAffinityTerm) bool {
		return Cluster(c, &term.ClusterAffinity) || slices.ContainsFunc(term.OverflowAffinities, func(o policyv1alpha1.OverflowAffinityTerm) bool {
			return Cluster(c, &o.ClusterAffinity)
		})
	})
}

func matchFields(exprs []corev1.NodeSelectorRequirement, c *clusterv1alpha1.Cluster) bool {
	for _, e := range exprs {
		if !matchField(e, FieldValues(e.Key, c)) {
			return false
		}
	}
	return true
}

// FieldValues returns the non-empty values of a field; a cluster can be in
// several zones.
func FieldValues(key string, c *clusterv1alpha1.Cluster) []string {
	var v string
	switch key {
	case FieldProvider:
		v = c.Spec.Provider
	case FieldRegion:
		v = c.Spec.Region
	case FieldZone:
		return Zones(c)
	}
	if v == "" {
		return nil
	}
	return []string{v}
}

// Zones returns the zones of c, from the current or the deprecated field.
func Zones(c *clusterv1alpha1.Cluster) []string {
	if len(c.Spec.Zones) > 0 {
		return c.Spec.Zones
	}
	if c.Spec.Zone != "" {
		return []string{c.Spec.Zone}
	}
	return nil
}

func matchField(e corev1.NodeSelectorRequirement, have []string) bool {
	overlap := slices.ContainsFunc(have, func(v string) bool { return slices.Contains(e.Values, v) })
	switch e.Operator {
	case corev1.NodeSelectorOpIn:
		return overlap
	case corev1.NodeSelectorOpNotIn:
		return !overlap
	case corev1.NodeSelectorOpExists:
		return len(have) > 0
	case corev1.NodeSelectorOpDoesNotExist:
		return len(have) == 0
	default:
		return false
	}
}
