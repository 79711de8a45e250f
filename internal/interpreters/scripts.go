package interpreters

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
)

// scripts is the layer of customizations. It is replaced as a whole, by one
// goroutine.
type scripts struct {
	machine *lua.Machine
	counts  *counts
	table   atomic.Pointer[kinds.Table]
	// sources is what the rules of each kind were compiled from.
	sources map[schema.GroupVersionKind][]source
}

// source is what counts of one customization.
type source struct {
	name  string
	rules configv1alpha1.CustomizationRules
}

func (s source) equal(o source) bool {
	return s.name == o.name && equality.Semantic.DeepEqual(s.rules, o.rules)
}

func newScripts(machine *lua.Machine, counts *counts) *scripts {
	s := &scripts{machine: machine, counts: counts}
	s.table.Store(&kinds.Table{})
	return s
}

// Rules implements kinds.Layer.
func (s *scripts) Rules(gvk schema.GroupVersionKind) kinds.Rules { return (*s.table.Load())[gvk] }

// use takes over customizations. It compiles those of kinds about which
// the customizations have changed, and returns these kinds, including those
// which no customization is about any more.
func (s *scripts) use(customizations []*configv1alpha1.ResourceInterpreterCustomization) (changed map[schema.GroupVersionKind]bool, problems []lua.Problem) {
	groups := map[schema.GroupVersionKind][]*configv1alpha1.ResourceInterpreterCustomization{}
	for _, c := range customizations {
		gvk := schema.FromAPIVersionAndKind(c.Spec.Target.APIVersion, c.Spec.Target.Kind)
		groups[gvk] = append(groups[gvk], c)
	}
	changed = map[schema.GroupVersionKind]bool{}
	sources, table := map[schema.GroupVersionKind][]source{}, maps.Clone(*s.table.Load())
	for gvk := range s.sources {
		if groups[gvk] == nil {
			changed[gvk] = true
			delete(table, gvk)
		}
	}
	for gvk, group := range groups {
		sources[gvk] = sourcesOf(group)
		if slices.EqualFunc(s.sources[gvk], sources[gvk], source.equal) {
			continue
		}
		changed[gvk] = true
		delete(table, gvk)
		layer, wrong := s.machine.Layer(group)
		maps.Copy(table, s.counts.table("customization", layer))
		problems = append(problems, wrong...)
	}
	s.sources = sources
	s.table.Store(&table)
	slices.SortStableFunc(problems, func(a, b lua.Problem) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Operation, b.Operation))
	})
	return changed, problems
}

// sourcesOf returns what counts of customizations of one kind, in the order in
// which they do.
func sourcesOf(group []*configv1alpha1.ResourceInterpreterCustomization) []source {
	out := make([]source, len(group))
	for i, c := range group {
		out[i] = source{c.Name, *c.Spec.Customizations.DeepCopy()}
	}
	slices.SortFunc(out, func(a, b source) int { return cmp.Compare(a.name, b.name) })
	return out
}
