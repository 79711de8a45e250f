package lua

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua/sandbox"
)

// Options are the budgets of one call of a script. Zero values stand for the
// budgets that are used in production.
type Options = sandbox.Options

// A BudgetError is the error of a script that was stopped because it used up a
// budget.
type BudgetError = sandbox.BudgetError

// Machine runs scripts. It may be used by several goroutines.
type Machine struct{ pool *sandbox.Pool }

// New returns a machine.
func New(opts Options) *Machine { return &Machine{sandbox.New(opts)} }

// Problem is a script that cannot be run.
type Problem struct {
	// Name of the customization; empty for rules that were given without one.
	Name string
	// Operation is the field of the rules, such as "healthInterpretation".
	Operation string
	Err       error
}

// named are rules, and the name of the customization that they come from.
type named struct {
	name  string
	rules *configv1alpha1.CustomizationRules
}

// Layer returns the rules of customizations. Those for one kind are merged in the
// order of their names: the first with a script for an operation counts, but
// dependencies are those of all scripts. A script that does not compile becomes a
// rule that returns the error.
func (m *Machine) Layer(customizations []*configv1alpha1.ResourceInterpreterCustomization) (kinds.Table, []Problem) {
	byKind := map[schema.GroupVersionKind][]named{}
	for _, c := range customizations {
		gvk := schema.FromAPIVersionAndKind(c.Spec.Target.APIVersion, c.Spec.Target.Kind)
		byKind[gvk] = append(byKind[gvk], named{c.Name, &c.Spec.Customizations})
	}
	table := make(kinds.Table, len(byKind))
	var problems []Problem
	for gvk, all := range byKind {
		slices.SortFunc(all, func(a, b named) int { return cmp.Compare(a.name, b.name) })
		var failed []Problem
		table[gvk], failed = m.merge(all)
		problems = append(problems, failed...)
	}
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Operation, b.Operation))
	})
	return table, problems
}

// Rules returns the rules that the scripts make, merged in the given order as by
// Layer.
func (m *Machine) Rules(rules ...configv1alpha1.CustomizationRules) (kinds.Rules, []Problem) {
	all := make([]named, len(rules))
	for i := range rules {
		all[i].rules = &rules[i]
	}
	return m.merge(all)
}
