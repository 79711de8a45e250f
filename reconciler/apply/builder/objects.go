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

// prepare removes what is not to be applied from built objects, and sorts them in the order of apply. Errors are
// build.ErrInvalid, and build.ErrEmpty if no object is left.
func (in Input) prepare(objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	objects = slices.DeleteFunc(objects, func(obj *unstructured.Unstructured) bool {
		return in.Kustomization.Spec.KubeConfig == nil && omissions.Whole(obj, in.Kustomization.Namespace)
	})
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
		// Move stringData to data. The server merges stringData into data, so
		// that a key which leaves Git would stay on the hub.
		if err := normalize.Unstructured(obj); err != nil {
			return nil, fmt.Errorf("%s: %w: its data cannot be read: write values under stringData, or as base64 under data", inventory.Describe(inventory.IDOf(obj)), build.ErrInvalid)
		}
	}
	inventory.Sort(objects)
	return objects, nil
}

// secretFault returns what is wrong with the values of a Secret, without quoting any of them; empty for nothing. This
// is checked before the Secret is sent, as the server quotes and logs values that it cannot decode.
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

// kindOf returns the type of a JSON value as people call it.
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

// Digest returns a digest of the objects of a revision, which is the same for another revision with the same objects,
// and their size in bytes of JSON.
func Digest(objects []*unstructured.Unstructured) (digest string, size int64) {
	hash := sha256.New()
	for _, obj := range objects {
		// Objects built from YAML can always be encoded as JSON, and a hash never fails to write.
		text, _ := json.Marshal(obj.Object)
		text = append(text, '\n')
		_, _ = hash.Write(text)
		size += int64(len(text))
	}
	return fmt.Sprintf("sha256:%x", hash.Sum(nil)), size
}
