package customization

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// Result is the outcome of one operation on one object.
type Result struct {
	Operation Operation
	Object    kinds.Object
	// By is the source of the answer; empty if there is no rule.
	By     string
	Answer Answer
	Err    error
}

// Trial runs operations.
type Trial struct {
	Stack *Stack
	// Sources are the places of the customizations, for errors in scripts.
	Sources []Source
}

// Run runs an operation on one object.
func (t Trial) Run(o Operation, in Input) Result {
	obj := in.one()
	gvk := obj.GroupVersionKind()
	out := Result{Operation: o, Object: obj, By: t.Stack.Answers(o, gvk)}
	if out.Answer, out.Err = o.run(t.Stack.Interpreter(), in); out.Err != nil {
		out.Err = &shown{located(t.Sources, o, o.names(t.Stack.Of(gvk)), out.Err)}
	}
	return out
}

// shown makes the error of a script, which may contain anything, printable.
type shown struct{ err error }

func (s *shown) Error() string { return oneLine(s.err) }
func (s *shown) Unwrap() error { return s.err }

// Files are the objects to run operations on.
type Files struct {
	Desired, Observed []kinds.Object
	Input             // the same for all of them
}

// Inputs pairs the objects of the files. Where an operation needs both sides,
// one of each is a pair whatever its name; of several, those of the same kind,
// namespace and name are.
func (f Files) Inputs(o Operation) ([]Input, error) {
	first := f.Input
	if len(f.Desired) > 0 {
		first.Desired = f.Desired[0]
	}
	if len(f.Observed) > 0 {
		first.Observed = f.Observed[0]
	}
	if err := o.lacks(first); err != nil {
		return nil, err
	}
	if o.items && len(f.Desired)+len(f.Observed) > 1 {
		return nil, fmt.Errorf("%s is for one object, and --status-file for the same: there are %d", o.Name, len(f.Desired)+len(f.Observed))
	}
	if !o.both {
		var out []Input
		for _, obj := range append(f.Desired, f.Observed...) {
			in := f.Input
			in.Desired = obj
			out = append(out, in)
		}
		return out, nil
	}
	return f.pairs()
}

// pairs returns the pairs of desired and observed objects.
func (f Files) pairs() ([]Input, error) {
	var out []Input
	for _, desired := range f.Desired {
		if observed := f.partner(desired); observed != nil {
			out = append(out, Input{Desired: desired, Observed: observed})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("--observed-file has no %s", nameOf(f.Desired[0]))
	}
	return out, nil
}

// partner returns the member's object for a desired one: the one with the same name, or the
// only one if each side has only one of the kind.
func (f Files) partner(desired kinds.Object) kinds.Object {
	gvk := desired.GroupVersionKind()
	var all []kinds.Object
	for _, observed := range f.Observed {
		if observed.GroupVersionKind() != gvk {
			continue
		}
		if nameOf(observed) == nameOf(desired) {
			return observed
		}
		all = append(all, observed)
	}
	alone := 0
	for _, other := range f.Desired {
		if other.GroupVersionKind() == gvk {
			alone++
		}
	}
	if len(all) == 1 && alone == 1 {
		return all[0]
	}
	return nil
}

// nameOf names an object for people: its kind, namespace and name.
func nameOf(obj kinds.Object) string {
	name := obj.GetName()
	if ns := obj.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return excerpt.Inline(strings.TrimSpace(obj.GetKind() + " " + name))
}

// About keeps the objects of the customizations' kinds, or all objects if there are none of
// these kinds.
func (f Files) About(sources []Source) Files {
	about := Kinds(sources)
	other := func(obj kinds.Object) bool { return !about[obj.GroupVersionKind()] }
	desired := slices.DeleteFunc(slices.Clone(f.Desired), other)
	observed := slices.DeleteFunc(slices.Clone(f.Observed), other)
	if len(desired)+len(observed) > 0 {
		f.Desired, f.Observed = desired, observed
	}
	return f
}

// Kinds returns the kinds of the customizations.
func Kinds(sources []Source) map[schema.GroupVersionKind]bool {
	out := map[schema.GroupVersionKind]bool{}
	for _, s := range sources {
		out[schema.FromAPIVersionAndKind(s.Customization.Spec.Target.APIVersion, s.Customization.Spec.Target.Kind)] = true
	}
	return out
}
