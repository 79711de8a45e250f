package comparison

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// hidden stands for a name that text of a Secret is in.
const hidden = "***"

// hides reports whether any field of a manifest may be text of a Secret.
func hides(obj *unstructured.Unstructured) bool {
	return obj != nil && obj.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] != ""
}

// conceal returns a copy with stand-ins for values of Secrets: in the data of a Secret, or, with all set, in every field
// but those by which the object is known.
func (d *differ) conceal(obj *unstructured.Unstructured, all bool) *unstructured.Unstructured {
	if obj == nil {
		return nil
	}
	secret := d.id.group == "" && d.id.kind == "Secret"
	if !secret && !all {
		return obj
	}
	out := make(map[string]any, len(obj.Object))
	for key, value := range obj.Object {
		switch {
		case key == "apiVersion", key == "kind":
			out[key] = value
		case key == "metadata":
			out[key] = d.metadata(value, all)
		case all, key == "data", key == "stringData":
			out[key] = d.standIn(value)
		default:
			out[key] = value
		}
	}
	return &unstructured.Unstructured{Object: out}
}

// metadata conceals all but the name, or nothing.
func (d *differ) metadata(value any, all bool) any {
	fields, ok := value.(map[string]any)
	if !ok || !all {
		return value
	}
	out := make(map[string]any, len(fields))
	for key, field := range fields {
		switch key {
		case "name":
			out[key] = d.object.Name
		case "namespace":
			out[key] = field
		default:
			out[key] = d.standIn(field)
		}
	}
	return out
}

// standIn replaces every value within by its size and a digest that only who knows the salt can make.
func (d *differ) standIn(value any) any {
	switch v := value.(type) {
	case nil:
		return nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, field := range v {
			out[key] = d.standIn(field)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = d.standIn(v[i])
		}
		return out
	}
	text, is := value.(string)
	if !is {
		text = encoded(value)
	}
	mac := hmac.New(sha256.New, d.Salt)
	mac.Write([]byte(text))
	return fmt.Sprintf("(hidden: %s)", hex.EncodeToString(mac.Sum(nil)[:6]))
}
