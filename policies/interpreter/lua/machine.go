package lua

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua/sandbox"
)

// Options are the budgets of one call of a script. Zero values are those of
// production.
type Options = sandbox.Options

// A BudgetError says that a script was stopped because it used up a budget.
type BudgetError = sandbox.BudgetError

// Machine runs scripts. It may be shared.
type Machine struct{ pool *sandbox.Pool }

// New returns a machine.
func New(opts Options) *Machine { return &Machine{sandbox.New(opts)} }

// Problem is a script that cannot be run.
type Problem struct {
	// Name of the customization; empty where rules were given alone.
	Name string
	// Operation is the field of the rules, such as "healthInterpretation".
	Operation string
	Err       error
}

// named is rules and where they are from.
type named struct {
	name  string
	rules *configv1alpha1.CustomizationRules
}

// Layer returns what customizations know, merged in the order of their names:
// the first that has a script for an operation wins; dependencies are those that
// all of them name. A script that does not compile answers with that error.
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

// Rules returns what the scripts know, the first of each operation.
func (m *Machine) Rules(rules ...configv1alpha1.CustomizationRules) (kinds.Rules, []Problem) {
	all := make([]named, len(rules))
	for i := range rules {
		all[i].rules = &rules[i]
	}
	return m.merge(all)
}
