package override

import (
	"encoding/json"
	"errors"
	"fmt"
	"sort"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// What a rule may cost.
const (
	// MaxOperations of one patch.
	MaxOperations = 1000
	// MaxBytes of a document before and after a patch.
	MaxBytes = 3 << 20
)

// Faults of a patch.
var (
	// ErrTooMany means that a patch has more than MaxOperations.
	ErrTooMany = fmt.Errorf("more than %d operations", MaxOperations)
	// ErrTooLarge means that a document exceeds MaxBytes.
	ErrTooLarge = fmt.Errorf("document of more than %d bytes", MaxBytes)
	errNotKept  = errors.New("a patch must not change apiVersion, kind, name or namespace")
)

// operation is one step of a JSON patch (RFC 6902).
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

func newOperation(op policyv1alpha1.OverriderOperator, path string, value apiextensionsv1.JSON) (operation, error) {
	out := operation{Op: string(op), Path: path}
	switch op {
	case policyv1alpha1.OverriderOpRemove:
	case policyv1alpha1.OverriderOpAdd, policyv1alpha1.OverriderOpReplace:
		if out.Value = value.Raw; len(out.Value) == 0 {
			out.Value = json.RawMessage("null")
		}
	default:
		return out, unknownOperator(op)
	}
	return out, CheckPointer(path)
}

// patch applies operations to a document. With an error comes the path of the
// operation that it is about.
func patch(doc []byte, ops []operation) (out []byte, path string, err error) {
	if len(ops) > MaxOperations {
		return nil, "", ErrTooMany
	}
	if len(doc) > MaxBytes {
		return nil, "", ErrTooLarge
	}
	data, err := json.Marshal(ops)
	if err != nil {
		return nil, "", err
	}
	steps, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return nil, "", err
	}
	opts := jsonpatch.NewApplyOptions()
	opts.SupportNegativeIndices = false
	opts.AccumulatedCopySizeLimit = MaxBytes
	opts.EscapeHTML = false
	out, err = steps.ApplyWithOptions(doc, opts)
	switch {
	case err != nil:
		return nil, culprit(doc, steps, opts), err
	case len(out) > MaxBytes:
		return nil, "", ErrTooLarge
	}
	return out, "", nil
}

// culprit finds the path of the first step that fails.
func culprit(doc []byte, steps jsonpatch.Patch, opts *jsonpatch.ApplyOptions) string {
	n := sort.Search(len(steps), func(n int) bool {
		_, err := steps[:n+1].ApplyWithOptions(doc, opts)
		return err != nil
	})
	if n == len(steps) {
		return ""
	}
	path, _ := steps[n].Path() // checked when it was made
	return path
}

// applyPlaintext applies the plaintext overriders as one patch.
func applyPlaintext(obj *unstructured.Unstructured, overriders []policyv1alpha1.PlaintextOverrider) (string, error) {
	if len(overriders) == 0 {
		return "", nil
	}
	ops := make([]operation, len(overriders))
	for i := range overriders {
		o := &overriders[i]
		var err error
		if ops[i], err = newOperation(o.Operator, o.Path, o.Value); err != nil {
			return o.Path, err
		}
	}
	doc, err := json.Marshal(obj.Object)
	if err != nil {
		return "", err
	}
	doc, path, err := patch(doc, ops)
	if err != nil {
		return path, err
	}
	var changed map[string]any
	if err := utiljson.Unmarshal(doc, &changed); err != nil {
		return "", fmt.Errorf("result is no object: %w", err)
	}
	if !sameIdentity(obj, &unstructured.Unstructured{Object: changed}) {
		return "", errNotKept
	}
	obj.Object = changed
	return "", nil
}

func sameIdentity(a, b *unstructured.Unstructured) bool {
	return a.GetAPIVersion() == b.GetAPIVersion() && a.GetKind() == b.GetKind() &&
		a.GetName() == b.GetName() && a.GetNamespace() == b.GetNamespace()
}

// applyField patches a JSON or YAML document that stands in a string.
func applyField(obj *unstructured.Unstructured, o *policyv1alpha1.FieldOverrider) error {
	ops := make([]operation, 0, len(o.JSON)+len(o.YAML))
	isYAML := len(o.YAML) > 0
	if isYAML {
		for i := range o.YAML {
			op, err := newOperation(o.YAML[i].Operator, o.YAML[i].SubPath, o.YAML[i].Value)
			if err != nil {
				return fmt.Errorf("yaml[%d]: %w", i, err)
			}
			ops = append(ops, op)
		}
	} else {
		for i := range o.JSON {
			op, err := newOperation(o.JSON[i].Operator, o.JSON[i].SubPath, o.JSON[i].Value)
			if err != nil {
				return fmt.Errorf("json[%d]: %w", i, err)
			}
			ops = append(ops, op)
		}
	}
	if len(ops) == 0 {
		return nil
	}
	return changeAt(obj.Object, o.FieldPath, func(text string) (string, error) {
		return patchText(text, ops, isYAML)
	})
}

func patchText(text string, ops []operation, isYAML bool) (string, error) {
	if len(text) > MaxBytes {
		return "", ErrTooLarge
	}
	doc := []byte(text)
	if isYAML {
		var err error
		if doc, err = yaml.YAMLToJSON(doc); err != nil {
			return "", fmt.Errorf("value is no YAML: %w", err)
		}
	} else if !json.Valid(doc) {
		return "", errors.New("value is no JSON")
	}
	doc, path, err := patch(doc, ops)
	if err != nil {
		return "", fmt.Errorf("sub path %q: %w", path, err)
	}
	if !isYAML {
		return string(doc), nil
	}
	out, err := yaml.JSONToYAML(doc)
	if err != nil {
		return "", err
	}
	return string(out), nil
}
