package aggregated

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/api/crds"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/validate"
)

// definitionOf reads a definition by its name.
func definitionOf(t testing.TB, name string) *definition {
	t.Helper()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		if crd.Name != name {
			continue
		}
		d, err := newDefinition(crd)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	t.Fatalf("no definition %s", name)
	return nil
}

// The defaults of bindings are set in Go and must equal those in the schema.
func TestBindingsGetTheDefaultsOfTheirSchema(t *testing.T) {
	d := definitionOf(t, "resourcebindings.work.karmada.io")
	schema := structural(t, d.crd)
	resource := "resource: {apiVersion: v1, kind: ConfigMap, name: c}"
	for name, spec := range map[string]string{
		"nothing said":           "{" + resource + "}",
		"empty parents":          "{" + resource + ", schedulePriority: {}, placement: {replicaScheduling: {}}, failover: {application: {decisionConditions: {}}, cluster: {}}}",
		"parents that are empty": "{" + resource + ", placement: {}, failover: {}}",
		"all said": "{" + resource + ", conflictResolution: Overwrite, schedulePriority: {priority: 3}, placement: {replicaScheduling: {replicaSchedulingType: Duplicated}}, " +
			"failover: {application: {purgeMode: Never, decisionConditions: {tolerationSeconds: 0}}, cluster: {purgeMode: Directly}}}",
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string]any{}
			if err := yaml.Unmarshal([]byte("spec: "+spec), &want); err != nil {
				t.Fatal(err)
			}
			got := read(t, want)
			defaulting.Default(want, schema)
			validate.DefaultBinding(got)
			if diff := cmp.Diff(read(t, want).Spec, got.Spec); diff != "" {
				t.Errorf("(-schema +ours):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(6, countDefaults(schema)); diff != "" {
		t.Errorf("defaults in the schema, each to be in the cases above (-want +got):\n%s", diff)
	}
}

func read(t *testing.T, content map[string]any) *workv1alpha2.ResourceBinding {
	t.Helper()
	data, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	b := &workv1alpha2.ResourceBinding{}
	if err := json.Unmarshal(data, b); err != nil {
		t.Fatal(err)
	}
	return b
}

// structural is the schema of the stored version.
func structural(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *structuralschema.Structural {
	t.Helper()
	for _, version := range crd.Spec.Versions {
		if !version.Storage {
			continue
		}
		var props apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &props, nil); err != nil {
			t.Fatal(err)
		}
		s, err := structuralschema.NewStructural(&props)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	t.Fatal("no stored version")
	return nil
}

func countDefaults(s *structuralschema.Structural) int {
	n := 0
	if s == nil {
		return n
	}
	if s.Default.Object != nil {
		n++
	}
	for _, p := range s.Properties {
		n += countDefaults(&p)
	}
	return n + countDefaults(s.Items)
}

// A Work's schema requires nothing in the spec that its Go type doesn't, so its manifests
// need not be decoded for the check.
func TestValidatorsAreThereWhereTheyAreNeeded(t *testing.T) {
	type has struct{ spec, status bool }
	for name, want := range map[string]has{
		"works.work.karmada.io":                   {spec: false, status: true},
		"resourcebindings.work.karmada.io":        {spec: true, status: true},
		"clusterresourcebindings.work.karmada.io": {spec: true, status: true},
	} {
		d := definitionOf(t, name)
		if got := (has{d.spec != nil, d.status != nil}); got != want {
			t.Errorf("%s: validators %+v, want %+v", name, got, want)
		}
	}
}

func TestCheckStatus(t *testing.T) {
	d := definitionOf(t, "works.work.karmada.io")
	for name, tc := range map[string]struct {
		status string
		want   []string
	}{
		"nothing": {"{}", nil},
		"a whole status": {`{conditions: [{type: Applied, status: "True", reason: Applied, message: done, lastTransitionTime: "2026-01-02T03:04:05Z"}],
manifestStatuses: [{identifier: {ordinal: 0, version: v1, kind: ConfigMap, resource: configmaps, name: c}, health: Healthy, status: {any: [thing, null, ""]}}]}`, nil},
		"a condition without a reason": {`{conditions: [{type: Applied, status: "True", message: done, lastTransitionTime: "2026-01-02T03:04:05Z"}]}`,
			[]string{"status.conditions[0].reason: Invalid value"}},
		"an unknown health": {`{manifestStatuses: [{identifier: {ordinal: 0, version: v1, kind: ConfigMap, resource: configmaps, name: c}, health: Ill}]}`,
			[]string{"status.manifestStatuses[0].health: Unsupported value"}},
	} {
		t.Run(name, func(t *testing.T) {
			status := &workv1alpha1.WorkStatus{}
			if err := yaml.UnmarshalStrict([]byte(tc.status), status); err != nil {
				t.Fatal(err)
			}
			before := status.DeepCopy()
			var got []string
			for _, err := range d.checkStatus(status) {
				got = append(got, err.Field+": "+err.Type.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, status); diff != "" {
				t.Errorf("checking changed the status:\n%s", diff)
			}
		})
	}
}

// Every version of a binding is a type that converts to the stored one.
func TestSchemeConverts(t *testing.T) {
	scheme := newScheme()
	old := &workv1alpha1.ResourceBinding{}
	old.Spec.Resource.Replicas = 3
	stored, err := scheme.ConvertToVersion(old, runtime.InternalGroupVersioner)
	if err != nil {
		t.Fatal(err)
	}
	if b, ok := stored.(*workv1alpha2.ResourceBinding); !ok || b.Spec.Replicas != 3 {
		t.Errorf("converted to %T %v", stored, stored)
	}
}
