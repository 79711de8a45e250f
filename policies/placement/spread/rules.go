package spread

import (
	"cmp"

	"fmt"
	"maps"
	"slices"
	"strings"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
)

// ImpossibleError says that no choice of the clusters that fit satisfies the
// constraints.
type ImpossibleError struct {
	// By is what the constraint groups by that cannot be satisfied, or all of them.
	By string
	// Message for users, which may count and name groups.
	Message string
}

func (e *ImpossibleError) Error() string { return e.Message }

// Cause is the same whatever clusters there are.
func (e *ImpossibleError) Cause() string { return "spread by " + e.By }

// bounds are the least and the most groups that a constraint wants.
type bounds struct{ least, most int }

const unbounded = int(^uint(0) >> 1)

// dimension is something to group clusters by, other than the clusters
// themselves.
type dimension struct {
	framework.Grouping
	bounds
}

// rules are constraints made ready: each thing to group by occurs once, with
// the narrowest bounds that any constraint gives it.
type rules struct {
	clusters   bounds
	dimensions []dimension // by region first, then as the constraints have them
}

func rulesOf(constraints []policyv1alpha1.SpreadConstraint) (rules, error) {
	r := rules{clusters: bounds{1, unbounded}}
	for i := range constraints {
		c := &constraints[i]
		by, err := framework.GroupingOf(c)
		if err != nil {
			return rules{}, err
		}
		b := r.find(by)
		b.least = max(b.least, c.MinGroups)
		if c.MaxGroups > 0 {
			b.most = min(b.most, c.MaxGroups)
		}
		if b.least > b.most {
			return rules{}, fmt.Errorf("spread by %s: at least %d and at most %d cannot be", by, b.least, b.most)
		}
	}
	for _, d := range r.dimensions {
		if d.Grouping == byRegion { // each region gives a cluster: the maximum bounds what is added to these
			r.clusters.most = max(r.clusters.most, d.least)
		}
	}
	slices.SortStableFunc(r.dimensions, func(a, b dimension) int {
		return -cmp.Compare(boolInt(a.Grouping == byRegion), boolInt(b.Grouping == byRegion))
	})
	return r, nil
}

var (
	byCluster = framework.Grouping{Field: policyv1alpha1.SpreadByFieldCluster}
	byRegion  = framework.Grouping{Field: policyv1alpha1.SpreadByFieldRegion}
)

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// find returns the bounds for what clusters are grouped by.
func (r *rules) find(by framework.Grouping) *bounds {
	if by.Field == policyv1alpha1.SpreadByFieldCluster {
		return &r.clusters
	}
	i := slices.IndexFunc(r.dimensions, func(d dimension) bool { return d.Grouping == by })
	if i < 0 {
		i = len(r.dimensions)
		r.dimensions = append(r.dimensions, dimension{by, bounds{1, unbounded}})
	}
	return &r.dimensions[i].bounds
}

// possible says which constraint alone asks for more groups than there are.
func (r *rules) possible(cs []framework.Candidate) error {
	for _, d := range r.dimensions {
		groups := groupsOf(d.Grouping, cs)
		if len(groups) < d.least {
			return &ImpossibleError{d.String(), fmt.Sprintf("spread over %s: only %d %s clusters that fit (%s)",
				d.Count(d.least), len(groups), have(len(groups)), list(groups))}
		}
	}
	if len(cs) < r.clusters.least {
		return tooFewClusters(len(cs), r.clusters.least)
	}
	return nil
}

func have(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

func groupsOf(by framework.Grouping, cs []framework.Candidate) []string {
	seen := map[string]bool{}
	var values []string
	for i := range cs {
		values = by.AppendValues(values[:0], cs[i].Cluster)
		for _, v := range values {
			seen[v] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// maxNamed is how many names a message lists; the rest is counted.
const maxNamed = 5

func list(names []string) string { return excerpt.Names(names, maxNamed) }

func tooFewClusters(n, least int) error {
	verb := "fit"
	if n == 1 {
		verb = "fits"
	}
	return &ImpossibleError{byCluster.String(), fmt.Sprintf("spread over %s: only %d %s", byCluster.Count(least), n, verb)}
}

// impossible says that no choice satisfies all constraints together.
func (r *rules) impossible(candidates int) error {
	texts := []string{r.clusters.text(byCluster)}
	for _, d := range r.dimensions {
		texts = append(texts, d.text(d.Grouping))
	}
	all := strings.Join(texts, " and ")
	return &ImpossibleError{all, fmt.Sprintf("no choice of the %s that fit spreads over %s", byCluster.Count(candidates), all)}
}

// text returns "2 to 3 zones", "2 zones or more", "3 zones".
func (b bounds) text(by framework.Grouping) string {
	switch {
	case b.least == b.most:
		return by.Count(b.least)
	case b.most == unbounded:
		return by.Count(b.least) + " or more"
	default:
		return fmt.Sprintf("%d to %s", b.least, by.Count(b.most))
	}
}

func noCapacity(in Input, chosen []framework.Candidate) error {
	return &framework.UnschedulableError{
		Spread:  true,
		Message: fmt.Sprintf("no enough resource when selecting %s: room for %d of %d %s", byCluster.Count(len(chosen)), capacity(chosen), in.Amount, in.Unit),
	}
}
