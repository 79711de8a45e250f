package fluxfields_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-io/flotilla/api/crds"
)

type schema = apiextensionsv1.JSONSchemaProps

// served returns what the spec of each of Flux's kinds may be, by kind and version.
func served(t *testing.T) map[string]schema {
	t.Helper()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]schema{}
	for _, crd := range all {
		if crd.Labels["app.kubernetes.io/part-of"] != "flux" {
			continue
		}
		for _, v := range crd.Spec.Versions {
			if v.Served {
				out[crd.Spec.Names.Kind+" "+crd.Spec.Group+"/"+v.Name] = v.Schema.OpenAPIV3Schema.Properties["spec"]
			}
		}
	}
	return out
}

// leaf is a field that has none below it.
type leaf struct {
	path string // such as "images[].name"
	schema
}

// leaves returns them, sorted.
func leaves(s schema, at string) []leaf {
	switch {
	case len(s.Properties) > 0:
		var out []leaf
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			out = append(out, leaves(s.Properties[name], strings.TrimPrefix(at+"."+name, "."))...)
		}
		return out
	case s.Items != nil:
		return leaves(*s.Items.Schema, at+"[]")
	default:
		return []leaf{{at, s}}
	}
}

// values are those to try: all that there are, if these are few.
func (l leaf) values(t *testing.T, choose map[string]string) []any {
	t.Helper()
	var out []any
	for _, value := range l.Enum {
		out = append(out, strings.Trim(string(value.Raw), `"`))
	}
	if len(out) == 0 {
		out = []any{l.value(t, l.path, choose)}
	}
	return out
}

// value returns one that a field may have: the one that is chosen for it, or any.
func (l leaf) value(t *testing.T, path string, choose map[string]string) any {
	t.Helper()
	if chosen := choose[path]; chosen != "" {
		return chosen
	}
	switch {
	case len(l.Enum) > 0:
		return strings.Trim(string(l.Enum[0].Raw), `"`)
	case l.Type == "boolean":
		return true
	case l.AdditionalProperties != nil:
		return map[string]any{"key": "value"}
	case l.Type != "string":
		t.Fatalf("%s is of type %s: give it a value here", path, l.Type)
	}
	for _, text := range []string{"name", "1m", "https://git.example.com/acme/fleet"} {
		if regexp.MustCompile(l.Pattern).MatchString(text) {
			return text
		}
	}
	t.Fatalf("%s takes what matches %s: give it a value here", path, l.Pattern)
	return nil
}

// with returns a value of the schema that sets the field of the path, and beside it only what is required.
func with(t *testing.T, s schema, at, path string, value any, choose map[string]string) any {
	t.Helper()
	set, below, _ := strings.Cut(path, ".")
	set = strings.TrimSuffix(set, "[]")
	switch {
	case len(s.Properties) > 0:
		out := map[string]any{}
		for name, child := range s.Properties {
			to := strings.TrimPrefix(at+"."+name, ".")
			switch {
			case name == set:
				out[name] = with(t, child, to, below, value, choose)
			case slices.Contains(s.Required, name):
				out[name] = with(t, child, to, "", nil, choose)
			}
		}
		return out
	case s.Items != nil:
		return []any{with(t, *s.Items.Schema, at+"[]", path, value, choose)}
	case value != nil:
		return value
	default:
		return leaf{at, s}.value(t, at, choose)
	}
}

// valid fails the test unless a spec is of the schema.
func valid(t *testing.T, s schema, spec any) {
	t.Helper()
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&s, &props, nil); err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		t.Fatal(err)
	}
	if faults := validation.ValidateCustomResource(field.NewPath("spec"), spec, validator); len(faults) > 0 {
		t.Fatalf("%v is not valid: %v", spec, faults.ToAggregate())
	}
}
