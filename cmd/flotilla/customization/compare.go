package customization

import (
	"errors"
	"fmt"

	"github.com/flotilla-io/flotilla/policies/interpreter"
)

// Change is what one operation answers differently for an object.
type Change struct {
	// Operation and Object say what was asked; Cluster whose object it was, empty
	// for the control plane's.
	Operation string `json:"operation"`
	Object    string `json:"object"`
	Cluster   string `json:"cluster,omitempty"`
	// Before and After say who answers; empty for nobody.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Diff is that of the answers, as YAML.
	Diff string `json:"diff,omitempty"`
	// Error is that of the new answer, if it has one and the old did not.
	Error string `json:"error,omitempty"`
}

// Question is an operation with what it is run on.
type Question struct {
	Operation Operation
	Input     Input
	// Cluster that the object is in; empty for the control plane.
	Cluster string
}

// Questions are all that can be asked with what is there. Where Replicas is not
// set, an object is not revised.
func Questions(cluster string, in Input) []Question {
	var out []Question
	for _, o := range operations {
		if o.observed == (in.Observed == nil) && !o.both {
			continue // it is asked about the other side
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

// Compare asks the question of both, and says what differs; nil for nothing.
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

// reported is what a rule says, without where its script was found.
func reported(err error) string {
	var rule *interpreter.Error
	if errors.As(err, &rule) {
		err = rule
	}
	return oneLine(err)
}

// shown is the answer for a comparison.
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

// Change writes what differs.
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
