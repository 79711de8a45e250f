package riskyedit

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// want is one value that is asked for, of a label or a field.
type want struct{ of, key, value string }

// wanted are the values of labels and fields that an affinity asks for; one that only has to be there is empty.
func wanted(a *policyv1alpha1.ClusterAffinity) []want {
	var out []want
	if s := a.LabelSelector; s != nil {
		for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
			out = append(out, want{"labelSelector", key, s.MatchLabels[key]})
		}
		for _, e := range s.MatchExpressions {
			switch e.Operator {
			case metav1.LabelSelectorOpIn:
				for _, value := range e.Values {
					out = append(out, want{"labelSelector", e.Key, value})
				}
			case metav1.LabelSelectorOpExists:
				out = append(out, want{"labelSelector", e.Key, ""})
			}
		}
	}
	if s := a.FieldSelector; s != nil {
		for _, e := range s.MatchExpressions {
			if e.Operator != corev1.NodeSelectorOpIn {
				continue
			}
			for _, value := range e.Values {
				out = append(out, want{"fieldSelector", e.Key, value})
			}
		}
	}
	return out
}

// newlyVacant says what after asks for that no cluster has, and before did not ask for.
func newlyVacant(before, after []*policyv1alpha1.ClusterAffinity, fleet []*clusterv1alpha1.Cluster) []string {
	known := map[want]bool{}
	for _, a := range before {
		for _, w := range wanted(a) {
			known[w] = true
		}
	}
	var out []string
	for _, a := range after {
		for _, w := range wanted(a) {
			if known[w] || slices.ContainsFunc(fleet, w.in) {
				continue
			}
			known[w] = true
			out = append(out, w.vacant(fleet))
		}
	}
	return out
}

// in reports whether a cluster has it.
func (w want) in(c *clusterv1alpha1.Cluster) bool {
	if w.of == "fieldSelector" {
		return selector.Cluster(c, &policyv1alpha1.ClusterAffinity{FieldSelector: &policyv1alpha1.FieldSelector{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: w.key, Operator: corev1.NodeSelectorOpIn, Values: []string{w.value}}},
		}})
	}
	value, there := c.Labels[w.key]
	return there && (w.value == "" || value == w.value)
}

// vacant says that no cluster has it, and what was meant.
func (w want) vacant(fleet []*clusterv1alpha1.Cluster) string {
	if w.of == "labelSelector" && w.value == "" {
		return fmt.Sprintf("%s asks for the label %s, which no cluster has%s", w.of, w.key, propagation.Hint(w.key, keysOf(fleet)))
	}
	return fmt.Sprintf("%s asks for %s=%s, which no cluster has%s", w.of, w.key, w.value, propagation.Hint(w.value, w.valuesOf(fleet)))
}

func keysOf(fleet []*clusterv1alpha1.Cluster) []string {
	var out []string
	for _, c := range fleet {
		out = slices.AppendSeq(out, maps.Keys(c.Labels))
	}
	return out
}

// valuesOf are those that clusters have of the same label or field.
func (w want) valuesOf(fleet []*clusterv1alpha1.Cluster) []string {
	var out []string
	for _, c := range fleet {
		if w.of == "fieldSelector" {
			out = append(out, selector.FieldValues(w.key, c)...)
		} else if value, there := c.Labels[w.key]; there {
			out = append(out, value)
		}
	}
	return out
}
