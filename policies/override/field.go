package override

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// Faults of a document that stands in a string.
var (
	errNoJSON  = errors.New("value is no JSON")
	errNoYAML  = errors.New("value is no YAML")
	errSeveral = errors.New("value has several YAML documents: put each in a field of its own")
)

// step is an operation on such a document.
type step struct {
	name string // of the step, such as "json[0]"
	operation
}

// field patches a JSON or YAML document that stands in a string.
func (e *editor) field(o *policyv1alpha1.FieldOverrider) error {
	steps, err := stepsOf(o)
	if err != nil || len(steps) == 0 {
		return err
	}
	return changeAt(e.obj.Object, o.FieldPath, func(text string) (string, error) {
		if err := e.spend(len(text)); err != nil {
			return "", err
		}
		if len(o.YAML) > 0 {
			out, err := patchYAML(text, steps)
			if errors.Is(err, errNoYAML) && e.secret {
				err = errNoYAML // the cause may quote what the Secret holds
			}
			return out, err
		}
		return patchJSON(text, steps)
	})
}

// stepsOf returns the steps of o; those for YAML beat those for JSON.
func stepsOf(o *policyv1alpha1.FieldOverrider) ([]step, error) {
	name, given := "yaml", o.YAML
	if len(given) == 0 {
		name = "json"
		for _, op := range o.JSON {
			given = append(given, policyv1alpha1.YAMLPatchOperation(op))
		}
	}
	if len(given) > MaxOperations {
		return nil, ErrTooMany
	}
	out := make([]step, len(given))
	for i, op := range given {
		out[i].name = at(name, i)
		var err error
		if out[i].operation, err = newOperation(op.Operator, op.SubPath, op.Value); err != nil {
			return nil, fmt.Errorf("%s at %q: %w", out[i].name, op.SubPath, err)
		}
	}
	return out, nil
}

// patchJSON keeps the order of keys, and numbers as they are written.
func patchJSON(text string, steps []step) (string, error) {
	switch doc := []byte(text); {
	case len(doc) > MaxBytes:
		return "", ErrTooLarge
	case !json.Valid(doc):
		return "", errNoJSON
	default:
		doc, err := patchSteps(doc, steps)
		return string(doc), err
	}
}

// patchYAML goes by JSON: comments, the order of keys and aliases are not kept.
func patchYAML(text string, steps []step) (string, error) {
	if len(text) > MaxBytes {
		return "", ErrTooLarge
	}
	if err := checkYAML(text); err != nil {
		return "", err
	}
	doc, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoYAML, err)
	}
	if doc, err = patchSteps(doc, steps); err != nil {
		return "", err
	}
	out, err := yaml.JSONToYAML(doc)
	if err != nil {
		return "", fmt.Errorf("write the document: %w", err)
	}
	return string(out), nil
}

func patchSteps(doc []byte, steps []step) ([]byte, error) {
	ops := make([]operation, len(steps))
	for i := range steps {
		ops[i] = steps[i].operation
	}
	out, culprit, err := patch(doc, ops)
	if err != nil && culprit >= 0 {
		return nil, fmt.Errorf("%s at %q: %w", steps[culprit].name, ops[culprit].Path, err)
	}
	return out, err
}

// checkYAML refuses what reading the text as one document would lose or blow
// up: further documents, and aliases that expand to more than MaxBytes.
func checkYAML(text string) error {
	aliases := strings.Contains(text, "*")
	if !aliases && !strings.Contains(text, "---") {
		return nil
	}
	dec := yamlv3.NewDecoder(strings.NewReader(text))
	for first := true; ; first = false {
		var doc yamlv3.Node
		switch err := dec.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", errNoYAML, err)
		case first:
			if _, err := (&expansion{sizes: map[*yamlv3.Node]int{}}).size(&doc); err != nil {
				return err
			}
		case len(doc.Content) > 0 && doc.Content[0].ShortTag() != "!!null":
			return errSeveral
		}
	}
}

// expansion measures documents with their aliases expanded.
type expansion struct {
	sizes map[*yamlv3.Node]int // of anchors; -1 while they are being measured
}

func (x *expansion) size(node *yamlv3.Node) (int, error) {
	if node.Kind == yamlv3.AliasNode {
		node = node.Alias
	}
	if node.Anchor != "" {
		if n, known := x.sizes[node]; known && n < 0 {
			return 0, fmt.Errorf("%w: an anchor contains itself", errNoYAML)
		} else if known {
			return n, nil
		}
		x.sizes[node] = -1
	}
	total := len(node.Value) + 1
	for _, c := range node.Content {
		n, err := x.size(c)
		if err != nil {
			return 0, err
		}
		if total += n; total > MaxBytes {
			return 0, fmt.Errorf("YAML aliases that expand to a %w", ErrTooLarge)
		}
	}
	if node.Anchor != "" {
		x.sizes[node] = total
	}
	return total, nil
}
