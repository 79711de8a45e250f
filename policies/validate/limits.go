package validate

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// mostEntries is how many entries a list of a policy or an override may have that is
// worked through for each template or cluster. Names of clusters are not among them: a
// fleet has as many as it has.
const mostEntries = 1000

// A list is one of an object's, by how long it is.
type list struct {
	path *field.Path
	n    int
}

// tooMany refuses lists that are too long, unless they were as long before: old has the
// same ones, or none.
func tooMany(now, old []list) field.ErrorList {
	var errs field.ErrorList
	for i, l := range now {
		if l.n > mostEntries && (old == nil || l.n > old[i].n) {
			errs = append(errs, field.TooMany(l.path, l.n, mostEntries))
		}
	}
	return errs
}

// listsOf are the lists of a policy; nil for none.
func listsOf(p policyv1alpha1.Policy) []list {
	if p == nil {
		return nil
	}
	spec, path := p.PropagationSpec(), field.NewPath("spec")
	place, at := &spec.Placement, path.Child("placement")
	out := []list{
		{path.Child("resourceSelectors"), len(spec.ResourceSelectors)},
		{path.Child("dependentOverrides"), len(spec.DependentOverrides)},
		{at.Child("clusterAffinities"), len(place.ClusterAffinities)},
		{at.Child("clusterTolerations"), len(place.ClusterTolerations)},
		{at.Child("spreadConstraints"), len(place.SpreadConstraints)},
	}
	var longest, weights list
	for i := range place.ClusterAffinities {
		if n := len(place.ClusterAffinities[i].OverflowAffinities); n > longest.n {
			longest = list{at.Child("clusterAffinities").Index(i).Child("overflowAffinities"), n}
		}
	}
	if s := place.ReplicaScheduling; s != nil && s.WeightPreference != nil {
		weights = list{at.Child("replicaScheduling", "weightPreference", "staticWeightList"), len(s.WeightPreference.StaticWeightList)}
	}
	return append(out, longest, weights)
}

// listsOfOverride are the lists of an override; nil for none.
func listsOfOverride(o policyv1alpha1.Override) []list {
	if o == nil {
		return nil
	}
	spec, path := o.OverrideSpec(), field.NewPath("spec")
	return []list{
		{path.Child("resourceSelectors"), len(spec.ResourceSelectors)},
		{path.Child("overrideRules"), len(spec.OverrideRules)},
	}
}

// seen remembers the entries of a list by what they look like, which shows in one look
// whether one was there before.
type seen map[string]int

// before returns the index of the first entry that says the same as entry, which is the
// one at i; i if there is none.
func (s seen) before(i int, entry any) int {
	text, err := json.Marshal(entry)
	if err != nil {
		return i // it holds what is no JSON: that is for others to say
	}
	if n, ok := s[string(text)]; ok {
		return n
	}
	s[string(text)] = i
	return i
}
