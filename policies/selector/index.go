package selector

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// IndexKeys returns the keys under which s is found by the resources that it may
// mean: that of a name, of a label that it asks for, or of the kind. They say
// nothing about the namespace.
func IndexKeys(s *policyv1alpha1.ResourceSelector) []string {
	kind := s.APIVersion + " " + s.Kind
	switch {
	case s.Name != "":
		return []string{kind + " name " + s.Name}
	case s.LabelSelector == nil:
		return []string{kind}
	case len(s.LabelSelector.MatchLabels) > 0:
		// Any of them does: all must match.
		k := slices.Min(slices.Collect(maps.Keys(s.LabelSelector.MatchLabels)))
		return []string{labelKey(kind, k, s.LabelSelector.MatchLabels[k])}
	}
	for _, e := range s.LabelSelector.MatchExpressions {
		switch {
		case e.Operator == metav1.LabelSelectorOpExists:
			return []string{kind + " has " + e.Key}
		case e.Operator == metav1.LabelSelectorOpIn && len(e.Values) > 0:
			keys := make([]string, len(e.Values))
			for i, v := range e.Values {
				keys[i] = labelKey(kind, e.Key, v)
			}
			return keys
		}
	}
	return []string{kind}
}

// LookupKeys returns the keys of every selector that may mean r. A selector none
// of whose keys is among them does not mean it.
func LookupKeys(r Resource) []string {
	kind := r.APIVersion + " " + r.Kind
	keys := make([]string, 0, 2+2*len(r.Labels))
	keys = append(keys, kind+" name "+r.Name, kind)
	for k, v := range r.Labels {
		keys = append(keys, labelKey(kind, k, v), kind+" has "+k)
	}
	return keys
}

func labelKey(kind, key, value string) string { return kind + " label " + key + "=" + value }
