package builder

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/policies/omissions"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/build"
)

// prepare removes from built objects what is not to be applied, and sorts them. Errors are build.ErrInvalid, and
// build.ErrEmpty where none is left.
func (in Input) prepare(objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	objects = slices.DeleteFunc(objects, func(obj *unstructured.Unstructured) bool { return omissions.Whole(obj, in.Kustomization.Namespace) })
	if len(objects) == 0 {
		return nil, fmt.Errorf("%w but those that install Flux, which the control plane has no use for", build.ErrEmpty)
	}
	for _, obj := range objects {
		unstructured.RemoveNestedField(obj.Object, "status")
		for _, omitted := range omissions.Remove(obj) {
			if in.Omitted != nil {
				in.Omitted(inventory.Describe(inventory.IDOf(obj)), omitted)
			}
		}
		if !utils.IsSecret(obj) {
			continue
		}
		if fault := secretFault(obj.Object); fault != "" {
			return nil, fmt.Errorf("%s: %w: %s", inventory.Describe(inventory.IDOf(obj)), build.ErrInvalid, fault)
		}
		// Plain values are written as data, so that a key which leaves Git
		// leaves the hub, too.
		if err := normalize.Unstructured(obj); err != nil {
			return nil, fmt.Errorf("%s: %w: its data cannot be read: write values under stringData, or as base64 under data", inventory.Describe(inventory.IDOf(obj)), build.ErrInvalid)
		}
	}
	inventory.Sort(objects)
	return objects, nil
}

// secretFault says what is wrong with the values of a Secret, without any of them; empty for nothing. The server
// is not asked, as it quotes and logs what it does not understand.
func secretFault(secret map[string]any) string {
	for _, field := range []string{"data", "stringData"} {
		values, isMap := secret[field].(map[string]any)
		if !isMap && secret[field] != nil {
			return fmt.Sprintf(".%s: expected map, got %s", field, kindOf(secret[field]))
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			text, isText := values[key].(string)
			if !isText && values[key] != nil {
				return fmt.Sprintf(".%s.%s: expected string, got %s: put it in quotes", field, key, kindOf(values[key]))
			}
			if _, err := base64.StdEncoding.DecodeString(text); field == "data" && err != nil {
				return fmt.Sprintf(".%s.%s: it is not base64: write plain values under stringData", field, key)
			}
		}
	}
	return ""
}

// kindOf is what a value is.
func kindOf(value any) string {
	switch value.(type) {
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case bool:
		return "a boolean"
	case string:
		return "text"
	default:
		return "a number"
	}
}

// Digest identifies what a revision wants, whatever it is called, and says how large that is, in bytes of JSON.
func Digest(objects []*unstructured.Unstructured) (digest string, size int64) {
	hash := sha256.New()
	for _, obj := range objects {
		// What was built from YAML can be written as JSON, and a hash takes all.
		text, _ := json.Marshal(obj.Object)
		text = append(text, '\n')
		_, _ = hash.Write(text)
		size += int64(len(text))
	}
	return fmt.Sprintf("sha256:%x", hash.Sum(nil)), size
}
