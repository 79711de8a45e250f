package propagation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Near returns how many typing mistakes keep a selector from matching a resource:
// in the name, the namespace, and the keys and values of labels, or, where the
// selector has a name, in the kind. Another API version counts as one. near is
// false where there is no mistake, or where the selector does not match for
// another reason.
func Near(s policyv1alpha1.ResourceSelector, r selector.Resource) (count int, near bool) {
	if s.Kind != r.Kind {
		n, ok := typed(s.Kind, r.Kind)
		if !ok || s.Name == "" {
			return 0, false
		}
		count += n
	}
	if s.APIVersion != r.APIVersion {
		count++
	}
	if s.Namespace != "" {
		n, ok := typed(s.Namespace, r.Namespace)
		if !ok {
			return 0, false
		}
		count += n
	}
	n, ok := 0, true
	switch {
	case s.Name != "":
		n, ok = typed(s.Name, r.Name)
	case s.LabelSelector != nil:
		n, ok = labelled(s.LabelSelector, r.Labels)
	}
	if count += n; !ok || count == 0 {
		return 0, false
	}
	return count, true
}

// typed returns the number of mistakes in a word that was written for another; ok
// is false where they are more than a third of its letters, or all, or where the two differ by their numbers alone.
func typed(written, meant string) (n int, ok bool) {
	most := min(max(len(written)/3, 1), len(written)-1)
	if len(written)-len(meant) > most || len(meant)-len(written) > most || numbered(written, meant) {
		return 0, false
	}
	n = mistakes(written, meant)
	return n, n <= most
}

// labelled returns the number of mistakes in a label selector.
func labelled(s *metav1.LabelSelector, set map[string]string) (count int, ok bool) {
	for key, value := range s.MatchLabels {
		n, ok := label(key, value, set)
		if !ok {
			return 0, false
		}
		count += n
	}
	for _, e := range s.MatchExpressions {
		n, ok := expressed(e, set)
		if !ok {
			return 0, false
		}
		count += n
	}
	return count, true
}

// label returns the smallest number of mistakes in the value of a key or, where
// the key does not exist, in the key of a value.
func label(key, value string, set map[string]string) (best int, ok bool) {
	if has, there := set[key]; there {
		return typed(value, has)
	}
	for other, has := range set {
		if n, near := typed(key, other); near && has == value && (!ok || n < best) {
			best, ok = n, true
		}
	}
	return best, ok
}

// expressed returns the smallest number of mistakes in the values of an
// expression with the operator In. Mistakes in other expressions are not looked
// for.
func expressed(e metav1.LabelSelectorRequirement, set map[string]string) (best int, ok bool) {
	all, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{e}})
	if err != nil {
		return 0, false
	}
	if all.Matches(labels.Set(set)) {
		return 0, true
	}
	if e.Operator != metav1.LabelSelectorOpIn {
		return 0, false
	}
	for _, value := range e.Values {
		if n, near := label(e.Key, value, set); near && (!ok || n < best) {
			best, ok = n, true
		}
	}
	return best, ok
}
