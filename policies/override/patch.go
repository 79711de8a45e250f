package override

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// Faults of a patch.
var (
	errWhole      = errors.New("the whole document can only become an object or a list")
	errNoObject   = errors.New("document is neither an object nor a list: replace it whole, with the empty path")
	errNoManifest = errors.New("the result is no object")
	errMissing    = errors.New("nothing is there: narrow the rule to what has it, or add it first")
	errIndex      = errors.New("the list has no such index")
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
		if path == "" {
			return out, errWhole
		}
		return out, CheckPointer(path)
	case policyv1alpha1.OverriderOpAdd, policyv1alpha1.OverriderOpReplace:
	default:
		return out, unknownOperator(op)
	}
	if out.Value = value.Raw; len(out.Value) == 0 {
		out.Value = json.RawMessage("null")
	}
	switch {
	case !json.Valid(out.Value):
		return out, errors.New("the new value is no JSON")
	case path == "" && !isContainer(out.Value):
		return out, errWhole
	}
	return out, CheckPointer(path)
}

// isContainer reports whether a JSON value is an object or a list.
func isContainer(value []byte) bool {
	value = bytes.TrimLeft(value, " \t\r\n")
	return len(value) > 0 && (value[0] == '{' || value[0] == '[')
}

// patch applies operations to a JSON document. With an error comes the index of
// the operation that it is about; -1 if it is about all.
func patch(doc []byte, ops []operation) (out []byte, culprit int, err error) {
	switch {
	case len(ops) > MaxOperations:
		return nil, -1, ErrTooMany
	case len(doc) > MaxBytes:
		return nil, -1, ErrTooLarge
	case !isContainer(doc) && ops[0].Path != "":
		return nil, 0, errNoObject
	case !isContainer(doc): // its first step replaces it whole
		doc = []byte("{}")
	}
	data := &bytes.Buffer{}
	enc := json.NewEncoder(data)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(ops); err != nil {
		return nil, -1, fmt.Errorf("encode a patch: %w", err)
	}
	steps, err := jsonpatch.DecodePatch(data.Bytes())
	if err != nil {
		return nil, -1, fmt.Errorf("decode a patch: %w", err)
	}
	opts := jsonpatch.NewApplyOptions()
	opts.EscapeHTML = false
	out, err = steps.ApplyWithOptions(doc, opts)
	switch {
	case err != nil:
		n := firstFault(doc, steps, opts)
		return nil, n, plainly(err)
	case len(out) > MaxBytes:
		return nil, -1, ErrTooLarge
	}
	return out, -1, nil
}

// firstFault finds the first step that fails.
func firstFault(doc []byte, steps jsonpatch.Patch, opts *jsonpatch.ApplyOptions) int {
	return sort.Search(len(steps)-1, func(n int) bool {
		_, err := steps[:n+1].ApplyWithOptions(doc, opts)
		return err != nil
	})
}

// plainly says in a user's words what the library found: its own name for the
// fault without the path, which the caller knows.
func plainly(err error) error {
	switch {
	case errors.Is(err, jsonpatch.ErrMissing):
		return errMissing
	case errors.Is(err, jsonpatch.ErrInvalidIndex):
		return errIndex
	default:
		return err
	}
}

// plaintext applies the plaintext overriders as one patch.
func (e *editor) plaintext(overriders []policyv1alpha1.PlaintextOverrider) (place, error) {
	if len(overriders) == 0 {
		return place{}, nil
	}
	whole := place{overrider: "plaintext"}
	if len(overriders) > MaxOperations {
		return whole, ErrTooMany
	}
	one := func(i int) place { return place{at("plaintext", i), overriders[i].Path} }
	ops := make([]operation, len(overriders))
	for i := range overriders {
		o := &overriders[i]
		var err error
		if ops[i], err = newOperation(o.Operator, o.Path, o.Value); err != nil {
			return one(i), err
		}
	}
	doc, err := json.Marshal(e.obj.Object)
	if err != nil {
		return whole, fmt.Errorf("encode the manifest: %w", err)
	}
	// Encoding is what an override costs most, however little it changes.
	if err := e.spend(len(doc)); err != nil {
		return whole, err
	}
	doc, culprit, err := patch(doc, ops)
	if err != nil {
		if culprit >= 0 {
			whole = one(culprit)
		}
		return whole, err
	}
	var changed map[string]any
	if !bytes.HasPrefix(doc, []byte("{")) {
		return whole, errNoManifest
	}
	if err := utiljson.Unmarshal(doc, &changed); err != nil {
		return whole, fmt.Errorf("read the result: %w", err)
	}
	e.obj.Object = changed
	return whole, nil
}
