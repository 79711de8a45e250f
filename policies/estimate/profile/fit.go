package profile

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
)

// finest is the finest resolution in which free resources are reported.
const finest = 16

// scale is how exactly kinds of nodes are reported.
type scale struct {
	// parts is the resolution in which free resources are reported; see down.
	parts int64
	// rows is how many there are of a kind at most; zero: any number.
	rows int
}

// scales are tried one after the other.
var scales = []scale{{parts: finest}, {parts: 8}, {parts: 4}, {parts: 2}, {parts: 1}, {parts: 1, rows: 64}, {parts: 1, rows: 16}, {parts: 1, rows: 4}}

// Of returns the profile of an index: the one that holds the most detail in MostBytes.
func Of(x *nodes.Index) *Profile { return within(x, MostBytes) }

// within first coarsens what is free, then leaves out labels, and then nodes.
func within(x *nodes.Index, most int) *Profile {
	s := surveyOf(x)
	quotas, unreported := s.fitQuotas(most / 2)
	out := &Profile{Version: Version, Quotas: quotas, QuotasOmitted: unreported, LeftOut: s.leftOut}
	if len(s.nodes) == 0 {
		return out
	}
	out.Resources = s.resources
	fits := func(groups []group, by scale) bool {
		out.Kinds = make([]Kind, len(groups))
		for i, g := range groups {
			out.Kinds[i] = g.Kind
			out.Kinds[i].Rows = s.rows(g.nodes, by.parts, by.rows)
		}
		return len(out.Encode()) <= most
	}
	for keys := 0; keys < len(s.keys) || keys == 0; keys = max(2*keys, 1) {
		out.Omitted = slices.Concat(s.apart, s.keys[:keys])
		slices.Sort(out.Omitted)
		groups := s.groups(keys)
		for _, by := range scales {
			if fits(groups, by) {
				return out
			}
		}
	}
	out.Omitted = []string{All}
	groups := s.groups(len(s.keys))
	for _, by := range scales {
		if fits(groups, by) {
			return out
		}
	}
	for !fits(groups, scale{parts: 1, rows: 1}) {
		if len(groups) == 0 {
			out.Resources = nil // there is no room even for their names
			return out
		}
		half := len(groups) / 2
		for _, g := range groups[half:] {
			out.LeftOut += int64(len(g.nodes))
		}
		groups = groups[:half]
	}
	return out
}

// fitQuotas returns the quotas in a text of so many bytes, and whether some namespaces are
// left out.
func (s *survey) fitQuotas(most int) (quotas []Quota, unreported bool) {
	for parts := int64(finest); parts >= 1; parts /= 2 {
		if quotas = grouped(s.quotas, parts); len(textOf(quotas)) <= most {
			return quotas, false
		}
	}
	left := s.quotas
	for len(left) > 0 {
		left = left[:len(left)/2]
		if n := len(left); n > 0 { // all quotas of a namespace, or none
			last := s.quotas[n].namespace
			left = slices.DeleteFunc(slices.Clone(left), func(q quota) bool { return q.namespace == last })
		}
		if quotas = grouped(left, 1); len(textOf(quotas)) <= most {
			break
		}
	}
	return quotas, true
}

// grouped returns the quotas; those of several namespaces that leave as much are one.
func grouped(quotas []quota, parts int64) []Quota {
	groups := map[string]*Quota{}
	for _, q := range quotas {
		is := Quota{Free: map[corev1.ResourceName]int64{}}
		for _, a := range q.Free {
			is.Free[a.Name] = down(a.Name, min(max(a.N, 0), nodes.Largest), parts)
		}
		for _, scope := range q.Scopes {
			is.Scopes = append(is.Scopes, Scope{scope.Operator, scope.Values})
		}
		key := textOf(is)
		if groups[key] == nil {
			groups[key] = &is
		}
		if of := groups[key]; !slices.Contains(of.Namespaces, q.namespace) {
			of.Namespaces = append(of.Namespaces, q.namespace)
		}
	}
	var out []Quota
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		out = append(out, *groups[key])
	}
	return out
}
