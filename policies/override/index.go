package override

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Index finds the overrides that mean a resource without looking at all of
// them. It is not safe for use by several goroutines while it changes. The zero
// value is empty.
type Index struct {
	entries map[owner]*entry
	slots   map[slot]map[owner]*entry
}

// owner is the name of an override; the namespace is empty for cluster-wide
// ones.
type owner struct{ namespace, name string }

// slot is where entries are found: by scope and kind, and by name where a
// selector has one. The zero kind is that of overrides of every resource.
type slot struct{ scope, apiVersion, kind, name string }

// entry is an override whose selectors are ready.
type entry struct {
	policyv1alpha1.Override
	selectors []matcher
}

// matcher is a resource selector whose labels are ready.
type matcher struct {
	plain  policyv1alpha1.ResourceSelector // without labels
	labels labels.Selector                 // nil if it has none, or a name, which beats them
	broken bool
}

func compile(o policyv1alpha1.Override) *entry {
	selectors := o.OverrideSpec().ResourceSelectors
	out := &entry{Override: o, selectors: make([]matcher, len(selectors))}
	for i, s := range selectors {
		m := &out.selectors[i]
		m.plain = s
		m.plain.LabelSelector = nil
		if s.Name == "" && s.LabelSelector != nil {
			var err error
			m.labels, err = metav1.LabelSelectorAsSelector(s.LabelSelector)
			m.broken = err != nil
		}
	}
	return out
}

// specificity is the same as that of the override, sooner.
func (e *entry) specificity(r selector.Resource) selector.Specificity {
	if !reaches(e, r) {
		return selector.None
	}
	if len(e.selectors) == 0 {
		return selector.All
	}
	best := selector.None
	for i := range e.selectors {
		best = max(best, e.selectors[i].match(r))
	}
	return best
}

func (m *matcher) match(r selector.Resource) selector.Specificity {
	s := selector.Match(m.plain, r)
	switch {
	case s == selector.None || m.broken:
		return selector.None
	case m.labels == nil:
		return s
	case m.labels.Matches(labels.Set(r.Labels)):
		return selector.Labels
	default:
		return selector.None
	}
}

// slots returns where the entry is to be found.
func (e *entry) slots() []slot {
	scope := e.GetNamespace()
	if len(e.selectors) == 0 {
		return []slot{{scope: scope}}
	}
	out := make([]slot, len(e.selectors))
	for i := range e.selectors {
		s := &e.selectors[i].plain
		out[i] = slot{scope, s.APIVersion, s.Kind, s.Name}
	}
	return out
}

// Set adds o, or puts it in the place of its former version.
func (x *Index) Set(o policyv1alpha1.Override) {
	x.Remove(o)
	if x.entries == nil {
		x.entries, x.slots = map[owner]*entry{}, map[slot]map[owner]*entry{}
	}
	key, e := ownerOf(o), compile(o)
	x.entries[key] = e
	for _, s := range e.slots() {
		if x.slots[s] == nil {
			x.slots[s] = map[owner]*entry{}
		}
		x.slots[s][key] = e
	}
}

// Remove takes o, whatever its version, out.
func (x *Index) Remove(o policyv1alpha1.Override) {
	key := ownerOf(o)
	e := x.entries[key]
	if e == nil {
		return
	}
	delete(x.entries, key)
	for _, s := range e.slots() {
		if delete(x.slots[s], key); len(x.slots[s]) == 0 {
			delete(x.slots, s)
		}
	}
}

func ownerOf(o policyv1alpha1.Override) owner { return owner{o.GetNamespace(), o.GetName()} }

// Of returns the overrides that apply to r in the order in which they are
// applied, as Sorted would of all that are in the index.
func (x *Index) Of(r selector.Resource) []policyv1alpha1.Override {
	var found []ranked
	collect := func(in, except map[owner]*entry) {
		for key, e := range in {
			if except[key] != nil {
				continue
			}
			if rank := e.specificity(r); rank != selector.None {
				found = append(found, ranked{e.Override, rank})
			}
		}
	}
	scopes := []string{"", r.Namespace}
	if r.Namespace == "" {
		scopes = scopes[:1]
	}
	for _, scope := range scopes {
		ofKind := x.slots[slot{scope, r.APIVersion, r.Kind, ""}]
		collect(x.slots[slot{scope: scope}], nil)
		collect(ofKind, nil)
		collect(x.slots[slot{scope, r.APIVersion, r.Kind, r.Name}], ofKind)
	}
	return inOrder(found)
}

// Each calls yield with every override in the index, in no order.
func (x *Index) Each(yield func(policyv1alpha1.Override)) {
	for _, e := range x.entries {
		yield(e.Override)
	}
}
