package lua

import (
	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua/sandbox"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// operation is an operation of interpreters for which a customization may have a
// script.
type operation struct {
	field, function string
	script          func(*configv1alpha1.CustomizationRules) *configv1alpha1.CustomizationScript
	// install makes the script the rule for the operation, unless there is one
	// already.
	install func(*kinds.Rules, runner)
}

// runner runs one script. A non-nil err is why the script cannot be run, and is
// returned instead.
type runner struct {
	machine *Machine
	script  *sandbox.Script
	err     error
}

var operations = []operation{
	{"retention", "Retain",
		func(r *configv1alpha1.CustomizationRules) *configv1alpha1.CustomizationScript { return r.Retention },
		func(r *kinds.Rules, run runner) { r.Retain = first(r.Retain, run.retain) }},
	{"replicaResource", "GetReplicas",
		func(r *configv1alpha1.CustomizationRules) *configv1alpha1.CustomizationScript {
			return r.ReplicaResource
		},
		func(r *kinds.Rules, run runner) { r.Replicas = first(r.Replicas, run.replicas) }},
	{"componentResource", "GetComponents",
		func(r *configv1alpha1.CustomizationRules) *configv1alpha1.CustomizationScript {
			return r.ComponentResource
		},
		func(r *kinds.Rules, run runner) { r.Components = first(r.Components, run.components) }},
	{"replicaRevision", "ReviseReplica",
		func(r *configv1alpha1.CustomizationRules) *configv1alpha1.CustomizationScript {
			return r.ReplicaRevision
		},
		func(r *kinds.Rules, run runner) { r.Revise = first(r.Revise, run.revise) }},
	{"statusReflection", "ReflectStatus",
		func(r *configv1alpha1.CustomizationRules) *configv1alpha1.CustomizationScript {
			return r.StatusReflection
		},
		func(r *kinds.Rules, run runner) { r.Reflect = first(r.Reflect, run.reflect) }},
	{"statusAggregation", "AggregateStatus",
		func(r *configv1alpha1.CustomizationRules) *configv1alpha1.CustomizationScript {
			return r.StatusAggregation
		},
		func(r *kinds.Rules, run runner) { r.Aggregate = first(r.Aggregate, run.aggregate) }},
	{"healthInterpretation", "InterpretHealth",
		func(r *configv1alpha1.CustomizationRules) *configv1alpha1.CustomizationScript {
			return r.HealthInterpretation
		},
		func(r *kinds.Rules, run runner) { r.Health = first(r.Health, run.health) }},
	{"dependencyInterpretation", "GetDependencies",
		func(r *configv1alpha1.CustomizationRules) *configv1alpha1.CustomizationScript {
			return r.DependencyInterpretation
		},
		func(r *kinds.Rules, run runner) { r.Dependencies = both(r.Dependencies, run.dependencies) }},
}

// merge returns the rules that the scripts make, in the given order, and the
// scripts that do not compile.
func (m *Machine) merge(all []named) (kinds.Rules, []Problem) {
	var (
		out      kinds.Rules
		problems []Problem
	)
	for _, n := range all {
		for _, op := range operations {
			given := op.script(n.rules)
			if given == nil || given.LuaScript == "" {
				continue
			}
			name := op.field
			if n.name != "" {
				name = n.name + "/" + op.field
			}
			run := runner{machine: m}
			run.script, run.err = sandbox.Compile(name, given.LuaScript, op.function)
			if run.err != nil {
				problems = append(problems, Problem{Name: n.name, Operation: op.field, Err: run.err})
			}
			op.install(&out, run)
		}
	}
	return out, problems
}

// first returns has, or next where has is nil.
func first[F func(kinds.Object, kinds.Object) (kinds.Object, error) |
	func(kinds.Object) (int32, *workv1alpha2.ReplicaRequirements, error) |
	func(kinds.Object) ([]workv1alpha2.Component, error) |
	func(kinds.Object, int32) (kinds.Object, error) |
	func(kinds.Object) (map[string]any, error) |
	func(kinds.Object, []workv1alpha2.AggregatedStatusItem) (map[string]any, error) |
	func(kinds.Object) (bool, error)](has, next F) F {
	if has != nil {
		return has
	}
	return next
}

// both returns a rule for the dependencies that any of two rules finds.
func both(has, next func(kinds.Object) ([]kinds.Dependency, error)) func(kinds.Object) ([]kinds.Dependency, error) {
	if has == nil {
		return next
	}
	return func(obj kinds.Object) ([]kinds.Dependency, error) {
		a, err := has(obj)
		if err != nil {
			return nil, err
		}
		b, err := next(obj)
		if err != nil {
			return nil, err
		}
		return rules.Union(a, b), nil
	}
}

// call runs the script and passes its results to read.
func (r runner) call(want int, read func(sandbox.Results) error, args ...any) error {
	if r.err != nil {
		return r.err
	}
	return r.machine.pool.Call(r.script, want, read, args...)
}
