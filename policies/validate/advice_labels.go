package validate

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-io/flotilla/policies/validate/syntax"
)

// mostCompared is how many requirements about one label are compared with each other:
// nobody reads advice about more.
const mostCompared = 16

// A requirement is one of a selector's, with its values at hand.
type requirement struct {
	operator metav1.LabelSelectorOperator
	values   sets.Set[string]
	index    int
}

// labelAdvice speaks of a selector that asks for two things at once.
func labelAdvice(s *metav1.LabelSelector, path *field.Path) []string {
	if s == nil {
		return nil
	}
	var out []string
	known := map[string][]requirement{}
	for i, e := range s.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		before := known[e.Key]
		value, fixed := s.MatchLabels[e.Key]
		if !fixed && len(before) >= mostCompared {
			continue
		}
		r := requirement{operator: e.Operator, values: sets.New(e.Values...), index: i}
		if len(before) < mostCompared {
			known[e.Key] = append(before, r)
		}
		if fixed && !r.admits(value) {
			out = append(out, syntax.Advise(at, "contradicts matchLabels, which wants %s=%s, so nothing matches: remove one of them", e.Key, value))
		} else if n := slices.IndexFunc(before, func(o requirement) bool { return contradict(r, o) }); n >= 0 {
			out = append(out, syntax.Advise(at, "contradicts matchExpressions[%d], so nothing matches: remove one of them", before[n].index))
		}
	}
	return out
}

// admits reports whether a label that has the value meets the requirement about it.
func (r requirement) admits(value string) bool {
	switch r.operator {
	case metav1.LabelSelectorOpIn:
		return r.values.Has(value)
	case metav1.LabelSelectorOpNotIn:
		return !r.values.Has(value)
	case metav1.LabelSelectorOpDoesNotExist:
		return false
	}
	return true
}

// contradict reports whether no value of a label meets both requirements.
func contradict(a, b requirement) bool {
	if a.operator != metav1.LabelSelectorOpIn {
		a, b = b, a
	}
	switch a.operator {
	case metav1.LabelSelectorOpIn:
		for value := range a.values {
			if b.admits(value) {
				return false
			}
		}
		return true
	case metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist:
		return (a.operator == metav1.LabelSelectorOpExists && b.operator == metav1.LabelSelectorOpDoesNotExist) ||
			(b.operator == metav1.LabelSelectorOpExists && a.operator == metav1.LabelSelectorOpDoesNotExist)
	}
	return false
}
