package framework

import (
	"fmt"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Grouping is what a spread constraint groups clusters by: a field, or a label
// where Field is empty.
type Grouping struct {
	Field policyv1alpha1.SpreadFieldValue
	Label string
}

// GroupingOf returns what c groups by. A constraint that names nothing groups by
// cluster. It fails for fields that clusters do not have.
func GroupingOf(c *policyv1alpha1.SpreadConstraint) (Grouping, error) {
	switch c.SpreadByField {
	case "":
		if c.SpreadByLabel != "" {
			return Grouping{Label: c.SpreadByLabel}, nil
		}
		return Grouping{Field: policyv1alpha1.SpreadByFieldCluster}, nil
	case policyv1alpha1.SpreadByFieldCluster, policyv1alpha1.SpreadByFieldRegion,
		policyv1alpha1.SpreadByFieldZone, policyv1alpha1.SpreadByFieldProvider:
		return Grouping{Field: c.SpreadByField}, nil
	default:
		return Grouping{}, fmt.Errorf("spread by %q: clusters have no such field", c.SpreadByField)
	}
}

// AppendValues appends the groups that c is in to dst: one for most, any number
// for zones, none where c lacks the field or label.
func (g Grouping) AppendValues(dst []string, c *Cluster) []string {
	var v string
	switch g.Field {
	case policyv1alpha1.SpreadByFieldCluster:
		v = c.Name
	case policyv1alpha1.SpreadByFieldRegion:
		v = c.Spec.Region
	case policyv1alpha1.SpreadByFieldProvider:
		v = c.Spec.Provider
	case policyv1alpha1.SpreadByFieldZone:
		return append(dst, selector.Zones(c.Cluster)...)
	default:
		v = c.Labels[g.Label]
	}
	if v == "" {
		return dst
	}
	return append(dst, v)
}

// Has reports whether c is in any group.
func (g Grouping) Has(c *Cluster) bool {
	if g.Field == policyv1alpha1.SpreadByFieldZone {
		return len(selector.Zones(c.Cluster)) > 0
	}
	return len(g.AppendValues(make([]string, 0, 1), c)) > 0
}

// String returns the name of the field, or "label x".
func (g Grouping) String() string {
	if g.Field == "" {
		return "label " + g.Label
	}
	return string(g.Field)
}

// Count returns n groups in words: "1 zone", "2 zones", "2 values of label x".
func (g Grouping) Count(n int) string {
	noun, rest := string(g.Field), ""
	if g.Field == "" {
		noun, rest = "value", " of label "+g.Label
	}
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s%s", n, noun, rest)
}
