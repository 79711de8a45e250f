package rulestest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// FromYAML returns an object of any fields.
func FromYAML(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	out := map[string]any{}
	if err := utiljson.Unmarshal(data, &out); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return out
}

// Made returns an object of a kind, "group/version Kind", whose other fields are
// given as YAML.
func Made(t testing.TB, of, fields string) kinds.Object {
	t.Helper()
	obj := &unstructured.Unstructured{Object: FromYAML(t, fields)}
	var apiVersion, kind string
	if _, err := fmt.Sscan(of, &apiVersion, &kind); err != nil {
		t.Fatal(err)
	}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	return obj
}

// Sum is a row about statuses: what a template of generation 2 gets of copies in
// the clusters m1, m2, … with the statuses given. Wanted are fields of the
// template's status; one that is null is not to be there.
type Sum struct {
	Kind, Spec string
	Statuses   []string
	Want       string
}

// CheckSums aggregates the statuses of each row by the rules of a table.
func CheckSums(t *testing.T, table kinds.Table, rows map[string]Sum) {
	t.Helper()
	know := interpreter.New(table)
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			template := Made(t, row.Kind, `{metadata: {name: x, namespace: shop, generation: 2}, spec: {`+row.Spec+`}, status: {observedGeneration: 1}}`)
			var all []workv1alpha2.AggregatedStatusItem
			for i, status := range row.Statuses {
				item := workv1alpha2.AggregatedStatusItem{ClusterName: Cluster(i)}
				if status != "-" {
					member := Made(t, row.Kind, `{metadata: {name: x, namespace: shop, generation: 7, annotations: {resourcetemplate.karmada.io/generation: "2"}}}`)
					member.Object["status"] = FromYAML(t, status)
					var err error
					if item.Status, err = know.ReflectStatus(member); err != nil {
						t.Fatal(err)
					}
				}
				all = append(all, item)
			}
			status, _, err := know.AggregateStatus(template, all)
			if err != nil {
				t.Fatal(err)
			}
			want, got := FromYAML(t, row.Want), map[string]any{}
			for field := range want {
				got[field] = status[field]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}
