package customization

import (
	"errors"
	"fmt"

	"github.com/flotilla-io/flotilla/policies/interpreter"
)

// Change is a difference between two answers of an operation for an object.
type Change struct {
	// Operation and Object name what was run on what. Cluster is the cluster of the object,
	// empty for the control plane.
	Operation string `json:"operation"`
	Object    string `json:"object"`
	Cluster   string `json:"cluster,omitempty"`
	// Before and After are the sources of the answers; empty if there is none.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Diff is the difference of the answers, as YAML.
	Diff string `json:"diff,omitempty"`
	// Error is the error of the new answer, if the old one had none or another.
	Error string `json:"error,omitempty"`
}

// Question is an operation with its input.
type Question struct {
	Operation Operation
	Input     Input
	// Cluster is the cluster of the object; empty for the control plane.
	Cluster string
}

// Questions returns all operations that can be run with an input. Without Replicas, the
// operation that sets them is left out.
func Questions(cluster string, in Input) []Question {
	var out []Question
	for _, o := range operations {
		if o.observed == (in.Observed == nil) && !o.both {
			continue // it runs on the other side
		}
		asked := in
		if !o.both && o.observed {
			asked.Desired = nil
		}
		if !o.both && !o.observed {
			asked.Observed = nil
		}
		if o.lacks(asked) == nil {
			out = append(out, Question{Operation: o, Input: asked, Cluster: cluster})
		}
	}
	return out
}

// Compare runs the question on both trials and returns the difference; nil if there is none.
func Compare(before, after Trial, q Question) (*Change, error) {
	old, now := before.Run(q.Operation, q.Input), after.Run(q.Operation, q.Input)
	change := Change{Operation: string(q.Operation.Name), Object: nameOf(q.Input.one()), Cluster: q.Cluster, Before: old.By, After: now.By}
	if now.Err != nil {
		change.Error = oneLine(now.Err)
		if old.Err != nil && reported(old.Err) == reported(now.Err) {
			return nil, nil
		}
		return &change, nil
	}
	var err error
	if change.Diff, err = Diff(old.shown(), now.shown(), "before", "after"); err != nil || change.Diff == "" {
		return nil, err
	}
	if gvk := q.Input.one().GroupVersionKind(); gvk.Group == "" && gvk.Kind == "Secret" {
		change.Diff = "(the contents of Secrets are not shown)\n"
	}
	return &change, nil
}

// reported returns the error of a rule, without the place of its script.
func reported(err error) string {
	var rule *interpreter.Error
	if errors.As(err, &rule) {
		err = rule
	}
	return oneLine(err)
}

// shown returns the answer in the form that is compared.
func (r Result) shown() any {
	switch {
	case r.Err != nil:
		return map[string]any{"error": oneLine(r.Err)}
	case r.By == "" && r.Answer.Changed == nil && r.Operation.Field != "statusReflection":
		return map[string]any{"answer": "none: " + r.Operation.Without}
	default:
		return r.bare()
	}
}

// Change writes a difference.
func (p *Printer) Change(c Change) error {
	where := ""
	if c.Cluster != "" {
		where = " in " + c.Cluster
	}
	who := func(by string) string {
		if by == "" {
			return "nobody"
		}
		return by
	}
	text := fmt.Sprintf("%s of %s%s: %s, before %s\n", c.Operation, c.Object, where, who(c.After), who(c.Before))
	if c.Error != "" {
		text += "  error: " + c.Error + "\n"
	}
	if p.printed > 0 {
		text = "\n" + text
	}
	p.printed++
	_, err := fmt.Fprint(p.Out, text+p.paint(c.Diff))
	return err
}
