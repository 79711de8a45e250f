package selector

import (
	"maps"
	"slices"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// IndexKey returns the key under which s is found by the resources that it may
// mean: that of a name, of one of the labels that it asks for, or of the kind.
// It says nothing about the namespace.
func IndexKey(s *policyv1alpha1.ResourceSelector) string {
	kind := s.APIVersion + " " + s.Kind
	switch {
	case s.Name != "":
		return kind + " name " + s.Name
	case s.LabelSelector == nil || len(s.LabelSelector.MatchLabels) == 0:
		return kind
	default:
		// Any of them does: all must match.
		k := slices.Min(slices.Collect(maps.Keys(s.LabelSelector.MatchLabels)))
		return labelKey(kind, k, s.LabelSelector.MatchLabels[k])
	}
}

// IndexKeys returns the keys of every selector that may mean r. A selector
// whose key is not among them does not mean it.
func IndexKeys(r Resource) []string {
	kind := r.APIVersion + " " + r.Kind
	keys := make([]string, 0, 2+len(r.Labels))
	keys = append(keys, kind+" name "+r.Name, kind)
	for k, v := range r.Labels {
		keys = append(keys, labelKey(kind, k, v))
	}
	return keys
}

func labelKey(kind, key, value string) string { return kind + " label " + key + "=" + value }
