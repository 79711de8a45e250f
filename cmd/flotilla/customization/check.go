package customization

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/lint"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
)

// Check is the report about a customization.
type Check struct {
	// Source is its place: FILE:LINE.
	Source     string `json:"source"`
	Name       string `json:"name"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Scripts has one entry for every operation.
	Scripts []ScriptCheck `json:"scripts"`
	// Findings are about everything except the scripts.
	Findings []lint.Finding `json:"findings,omitempty"`
}

// States of a script.
const (
	ScriptOK      = "ok"
	ScriptUnset   = "not given"
	ScriptFailing = "error"
)

// ScriptCheck is the report about the script for an operation.
type ScriptCheck struct {
	Operation string `json:"operation"`
	Function  string `json:"function"`
	// State is ScriptOK, ScriptUnset or ScriptFailing.
	State string `json:"state"`
	// Runs is the number of objects on which it was run.
	Runs int `json:"runs,omitempty"`
	// Error is what is wrong, with the place.
	Error string `json:"error,omitempty"`
}

// Failed reports whether anything is wrong.
func (c Check) Failed() bool {
	return slices.ContainsFunc(c.Scripts, func(s ScriptCheck) bool { return s.State == ScriptFailing }) ||
		slices.ContainsFunc(c.Findings, func(f lint.Finding) bool { return f.Severity == lint.Error })
}

// Checks checks every customization of the sources: that the scripts compile, define their
// functions, and run on the objects of the kind, if there are any. findings are those of
// lint about the same files.
func Checks(machine *lua.Machine, sources []Source, findings []lint.Finding, files Files) []Check {
	out := make([]Check, 0, len(sources))
	for _, s := range sources {
		c := s.Customization
		check := Check{Source: s.String(), Name: c.Name, APIVersion: c.Spec.Target.APIVersion, Kind: c.Spec.Target.Kind}
		for _, f := range findings {
			if f.File == s.File.Name && f.Document == s.doc.Number && !strings.HasSuffix(f.Field, ".luaScript") {
				check.Findings = append(check.Findings, f)
			}
		}
		stack := NewStack(machine, []*configv1alpha1.ResourceInterpreterCustomization{c})
		trial := Trial{Stack: stack, Sources: []Source{s}}
		for _, o := range operations {
			check.Scripts = append(check.Scripts, trial.script(o, s, files))
		}
		out = append(out, check)
	}
	return out
}

// script checks the script of one operation.
func (t Trial) script(o Operation, s Source, files Files) ScriptCheck {
	out := ScriptCheck{Operation: string(o.Name), Function: o.Function, State: ScriptOK}
	given := *o.script(&s.Customization.Spec.Customizations)
	if given == nil {
		out.State = ScriptUnset
		return out
	}
	if err := lua.Check(given.LuaScript, o.Function); err != nil {
		out.State, out.Error = ScriptFailing, s.at(o, scriptLine(err))+": "+oneLine(err)
		return out
	}
	for _, p := range t.Stack.Problems {
		if p.Operation == o.Field {
			out.State, out.Error = ScriptFailing, s.at(o, scriptLine(p.Err))+": "+oneLine(p.Err)
			return out
		}
	}
	inputs, err := files.of(s).side(o).Inputs(o)
	if err != nil {
		return out // not run: its inputs were not given
	}
	for _, in := range inputs {
		if r := t.Run(o, in); r.Err != nil {
			out.State, out.Error = ScriptFailing, oneLine(r.Err)
			return out
		}
		out.Runs++
	}
	return out
}

// of keeps the objects of the kind of a customization.
func (f Files) of(s Source) Files {
	gvk := schema.FromAPIVersionAndKind(s.Customization.Spec.Target.APIVersion, s.Customization.Spec.Target.Kind)
	other := func(obj kinds.Object) bool { return obj.GroupVersionKind() != gvk }
	f.Desired = slices.DeleteFunc(slices.Clone(f.Desired), other)
	f.Observed = slices.DeleteFunc(slices.Clone(f.Observed), other)
	return f
}

// side keeps one side of the objects for an operation that needs only one. If there are both,
// it keeps the side on which the operation runs.
func (f Files) side(o Operation) Files {
	switch {
	case o.both || len(f.Desired) == 0 || len(f.Observed) == 0:
	case o.observed:
		f.Desired = nil
	default:
		f.Observed = nil
	}
	return f
}

// Text returns the check as text for people.
func (c Check) Text() string {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s: %s, about %s of %s\n", c.Source, excerpt.Inline(c.Name), excerpt.Inline(c.Kind), excerpt.Inline(c.APIVersion))
	for _, f := range c.Findings {
		fmt.Fprintf(&out, "  %s\n", f)
	}
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "  OPERATION\tFUNCTION\tRESULT")
	for _, s := range c.Scripts {
		_, _ = fmt.Fprintf(table, "  %s\t%s\t%s\n", s.Operation, s.Function, s.result())
	}
	_ = table.Flush() // to memory
	return out.String()
}

func (s ScriptCheck) result() string {
	switch {
	case s.State == ScriptFailing:
		return "error: " + s.Error
	case s.Runs == 1:
		return "ok, and runs"
	case s.Runs > 1:
		return fmt.Sprintf("ok, and runs on %d objects", s.Runs)
	default:
		return s.State
	}
}
