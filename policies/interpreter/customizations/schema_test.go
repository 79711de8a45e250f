package customizations_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-io/flotilla/api/crds"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/rulestest"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// schemas returns validators for the statuses of the kinds whose CRDs are in the
// repository.
func schemas(t *testing.T) map[schema.GroupVersionKind]validation.SchemaValidator {
	t.Helper()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	out := map[schema.GroupVersionKind]validation.SchemaValidator{}
	for _, crd := range all {
		for _, v := range crd.Spec.Versions {
			status, ok := v.Schema.OpenAPIV3Schema.Properties["status"]
			if !ok {
				continue
			}
			var props apiextensions.JSONSchemaProps
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&status, &props, nil); err != nil {
				t.Fatal(err)
			}
			validator, _, err := validation.NewSchemaValidator(&props)
			if err != nil {
				t.Fatal(err)
			}
			out[schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}] = validator
		}
	}
	return out
}

// TestServersAccept checks that API servers accept the aggregated status, even
// where members report what their own servers would have refused.
func TestServersAccept(t *testing.T) {
	know, checked := interpreter.New(customizations.Table()), 0
	known := schemas(t)
	for _, e := range examples(t) {
		validator, ok := known[e.GVK()]
		if !ok {
			continue
		}
		checked++
		t.Run(strings.TrimPrefix(e.Dir, "testdata/"), func(t *testing.T) {
			accept := func(reported []workv1alpha2.AggregatedStatusItem) {
				t.Helper()
				status, _, err := know.AggregateStatus(e.Template, reported)
				if err != nil {
					return
				}
				for _, err := range validation.ValidateCustomResource(field.NewPath("status"), runtime.DeepCopyJSON(status), validator) {
					t.Error(err)
				}
			}
			accept(rulestest.Items(t, know, e))
			// nil is left out: a field that no cluster has is taken for one that the
			// schema does not have.
			for _, v := range slices.DeleteFunc(odd(), func(v any) bool { return v == nil }) {
				for i := range places(e.Members[0].Object) {
					strange := e
					strange.Members = []kinds.Object{placed(e.Members[0], i, v), placed(e.Members[0], i, v)}
					accept(rulestest.Items(t, know, strange))
				}
			}
		})
	}
	if checked == 0 {
		t.Error("no definition is at hand")
	}
}
