package customization

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// Input is the input of an operation.
type Input struct {
	// Desired is the template or manifest, Observed the member's object.
	Desired, Observed kinds.Object
	// Replicas is the number to set; nil if none was given.
	Replicas *int32
	// Items are the reports of the clusters; nil if none were given.
	Items []workv1alpha2.AggregatedStatusItem
}

// one returns Desired, or Observed if that is nil.
func (in Input) one() kinds.Object {
	if in.Desired != nil {
		return in.Desired
	}
	return in.Observed
}

// Value is a part of an answer.
type Value struct {
	Name string
	// Is is the value; nil if there is none.
	Is any
}

// Answer is the result of an operation: values, or a changed object.
type Answer struct {
	Values []Value
	// Changed is the changed object; nil for operations that return values.
	Changed kinds.Object
}

// Operation is an interpreter operation of the API.
type Operation struct {
	Name configv1alpha1.InterpreterOperation
	// Field of a customization that has the script, and the Function in it.
	Field, Function string
	// Doc describes what the function gets and returns.
	Doc []string
	// Without describes what holds if there is no rule.
	Without string

	observed              bool // it runs on the member's object
	both, replicas, items bool // what it needs besides one object
	script                func(*configv1alpha1.CustomizationRules) **configv1alpha1.CustomizationScript
	known                 func(kinds.Rules) bool
	run                   func(*interpreter.Interpreter, Input) (Answer, error)
}

// Find returns the operation of a name, in any case.
func Find(name string) (Operation, error) {
	for _, o := range operations {
		if strings.EqualFold(string(o.Name), name) {
			return o, nil
		}
	}
	return Operation{}, fmt.Errorf("there is no operation %q: it is one of %s", name, strings.Join(Names(), ", "))
}

// Names returns the names of all operations.
func Names() []string {
	out := make([]string, len(operations))
	for i, o := range operations {
		out[i] = string(o.Name)
	}
	return out
}

// lacks returns an error with the missing flag; nil if the operation can be run.
func (o Operation) lacks(in Input) error {
	switch {
	case o.both && (in.Desired == nil || in.Observed == nil):
		return fmt.Errorf("%s needs the object as it is desired and as the member has it: --desired-file and --observed-file", o.Name)
	case !o.both && in.one() == nil:
		return fmt.Errorf("%s needs an object: --desired-file or --observed-file", o.Name)
	case !o.both && in.Desired != nil && in.Observed != nil:
		return fmt.Errorf("%s needs one object: give --desired-file or --observed-file, not both", o.Name)
	case o.replicas && in.Replicas == nil:
		return fmt.Errorf("%s needs a number: --desired-replica", o.Name)
	case o.items && in.Items == nil:
		return fmt.Errorf("%s needs what the clusters report: --status-file", o.Name)
	default:
		return nil
	}
}

// names returns the names of the customizations with a script for the operation: only the
// first by name, which is the one that runs, except for dependencies, for which all run.
func (o Operation) names(of []*configv1alpha1.ResourceInterpreterCustomization) []string {
	var out []string
	for _, c := range of {
		if *o.script(&c.Spec.Customizations) != nil {
			out = append(out, c.Name)
		}
	}
	slices.Sort(out)
	if o.Name != configv1alpha1.InterpreterOperationInterpretDependency && len(out) > 1 {
		out = out[:1]
	}
	return out
}

// operations are all operations, in the order in which they run on a change.
var operations = []Operation{
	{
		Name: configv1alpha1.InterpreterOperationInterpretReplica, Field: "replicaResource", Function: "GetReplicas",
		Doc: []string{
			"GetReplicas(obj) returns how many replicas the template asks for, and what one of them",
			"needs: {nodeClaim, resourceRequest}, or nil. kube.accuratePodRequirements(podTemplate)",
			"makes the second from a pod template.",
		},
		Without: "the kind has no replicas: it cannot be divided",
		script: func(r *configv1alpha1.CustomizationRules) **configv1alpha1.CustomizationScript {
			return &r.ReplicaResource
		},
		known: func(r kinds.Rules) bool { return r.Replicas != nil },
		run: func(i *interpreter.Interpreter, in Input) (Answer, error) {
			n, needs, _, err := i.Replicas(in.one())
			values := []Value{{"replicas", int64(n)}}
			if needs != nil {
				values = append(values, Value{"requirements", needs})
			}
			return Answer{Values: values}, err
		},
	},
	{
		Name: configv1alpha1.InterpreterOperationInterpretComponent, Field: "componentResource", Function: "GetComponents",
		Doc: []string{
			"GetComponents(obj) returns the parts of a template with several kinds of pods: a list of",
			"{name, replicas, replicaRequirements}.",
		},
		Without: "the kind has no components",
		script: func(r *configv1alpha1.CustomizationRules) **configv1alpha1.CustomizationScript {
			return &r.ComponentResource
		},
		known: func(r kinds.Rules) bool { return r.Components != nil },
		run: func(i *interpreter.Interpreter, in Input) (Answer, error) {
			parts, _, err := i.Components(in.one())
			return Answer{Values: []Value{{"components", listOf(parts)}}}, err
		},
	},
	{
		Name: configv1alpha1.InterpreterOperationReviseReplica, Field: "replicaRevision", Function: "ReviseReplica",
		Doc: []string{
			"ReviseReplica(obj, replica) returns the template with that many replicas: what one cluster",
			"gets of a divided one.",
		},
		Without:  "the number of replicas cannot be changed: it cannot be divided",
		replicas: true,
		script: func(r *configv1alpha1.CustomizationRules) **configv1alpha1.CustomizationScript {
			return &r.ReplicaRevision
		},
		known: func(r kinds.Rules) bool { return r.Revise != nil },
		run: func(i *interpreter.Interpreter, in Input) (Answer, error) {
			revised, _, err := i.Revise(in.one(), *in.Replicas)
			return Answer{Changed: revised}, err
		},
	},
	{
		Name: configv1alpha1.InterpreterOperationInterpretDependency, Field: "dependencyInterpretation", Function: "GetDependencies",
		Doc: []string{
			"GetDependencies(desiredObj) returns what the template cannot run without: a list of",
			"{apiVersion, kind, namespace, name}, or with labelSelector in place of name.",
			"kube.getPodDependencies(podTemplate, namespace) makes the list from a pod template.",
		},
		Without: "nothing follows the object",
		script: func(r *configv1alpha1.CustomizationRules) **configv1alpha1.CustomizationScript {
			return &r.DependencyInterpretation
		},
		known: func(r kinds.Rules) bool { return r.Dependencies != nil },
		run: func(i *interpreter.Interpreter, in Input) (Answer, error) {
			deps, _, err := i.Dependencies(in.one())
			return Answer{Values: []Value{{"dependencies", listOf(deps)}}}, err
		},
	},
	{
		Name: configv1alpha1.InterpreterOperationRetain, Field: "retention", Function: "Retain",
		Doc: []string{
			"Retain(desiredObj, observedObj) returns the object to apply: what is desired, with the",
			"values that belong to the member taken over from its object.",
		},
		Without: "all that is desired is applied",
		both:    true,
		script:  func(r *configv1alpha1.CustomizationRules) **configv1alpha1.CustomizationScript { return &r.Retention },
		known:   func(r kinds.Rules) bool { return r.Retain != nil },
		run: func(i *interpreter.Interpreter, in Input) (Answer, error) {
			kept, err := i.Retain(in.Desired, in.Observed)
			return Answer{Changed: kept}, err
		},
	},
	{
		Name: configv1alpha1.InterpreterOperationInterpretStatus, Field: "statusReflection", Function: "ReflectStatus",
		Doc: []string{
			"ReflectStatus(observedObj) returns what is reported of the member's status, or nil.",
		},
		Without:  "the whole status is reported",
		observed: true,
		script: func(r *configv1alpha1.CustomizationRules) **configv1alpha1.CustomizationScript {
			return &r.StatusReflection
		},
		known: func(r kinds.Rules) bool { return r.Reflect != nil },
		run: func(i *interpreter.Interpreter, in Input) (Answer, error) {
			status, err := i.ReflectStatus(in.one())
			if err != nil || status == nil {
				return Answer{Values: []Value{{"status", nil}}}, err
			}
			return Answer{Values: []Value{{"status", status}}}, nil
		},
	},
	{
		Name: configv1alpha1.InterpreterOperationInterpretHealth, Field: "healthInterpretation", Function: "InterpretHealth",
		Doc: []string{
			"InterpretHealth(observedObj) returns true if the member's object is healthy.",
		},
		Without:  "an object is healthy once it exists",
		observed: true,
		script: func(r *configv1alpha1.CustomizationRules) **configv1alpha1.CustomizationScript {
			return &r.HealthInterpretation
		},
		known: func(r kinds.Rules) bool { return r.Health != nil },
		run: func(i *interpreter.Interpreter, in Input) (Answer, error) {
			health, err := i.Health(in.one())
			out := Answer{Values: []Value{{"healthy", health == workv1alpha2.ResourceHealthy}}}
			if shown, _ := i.Shown(in.one()); err == nil && shown != health { // the error is the same
				out.Values = append(out.Values, Value{"waiting", true})
			}
			return out, err
		},
	},
	{
		Name: configv1alpha1.InterpreterOperationAggregateStatus, Field: "statusAggregation", Function: "AggregateStatus",
		Doc: []string{
			"AggregateStatus(desiredObj, statusItems) returns the template with the status that the",
			"items make together: a list of {clusterName, status, applied, appliedMessage, health}.",
		},
		Without: "the status of the template is never written",
		items:   true,
		script: func(r *configv1alpha1.CustomizationRules) **configv1alpha1.CustomizationScript {
			return &r.StatusAggregation
		},
		known: func(r kinds.Rules) bool { return r.Aggregate != nil },
		run: func(i *interpreter.Interpreter, in Input) (Answer, error) {
			status, _, err := i.AggregateStatus(in.one(), in.Items)
			if err != nil {
				return Answer{}, err
			}
			out := in.one().DeepCopy()
			delete(out.Object, "status")
			if status != nil {
				out.Object["status"] = runtime.DeepCopyJSON(status)
			}
			return Answer{Changed: out}, nil
		},
	},
}

// listOf returns an empty list instead of nil.
func listOf[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// errNoObject means that there is no object on which to run an operation.
var errNoObject = errors.New("there is no object in the files")
