package rules_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// TestReflect checks that the named fields of a status are reported, or all of
// them, with the generations that they are about where those matter.
func TestReflect(t *testing.T) {
	const template = `annotations: {resourcetemplate.karmada.io/generation: "2"}`
	cases := map[string]struct {
		rule           func(kinds.Object) (map[string]any, error)
		observed, want string
	}{
		"all":                         {rules.ReflectAll, `{status: {a: 1, b: {c: d}}}`, `{a: 1, b: {c: d}}`},
		"nothing where nothing is":    {rules.ReflectAll, `{spec: {}}`, `null`},
		"nothing where it is no such": {rules.ReflectAll, `{status: fine}`, `null`},
		"fields, those that are":      {rules.Reflect("a", "b", "x"), `{status: {a: 1, b: {c: d}, e: 2}}`, `{a: 1, b: {c: d}}`},
		"fields of nothing":           {rules.Reflect("a"), `{spec: {}}`, `null`},
		"what it is about": {
			rules.ReflectTracked("a"), `{metadata: {generation: 5, ` + template + `}, status: {a: 1, observedGeneration: 4, b: 2}}`,
			`{a: 1, observedGeneration: 4, generation: 5, resourceTemplateGeneration: 2}`,
		},
		"what it is about where nobody says": {
			rules.ReflectTracked("a"), `{metadata: {annotations: {resourcetemplate.karmada.io/generation: two}}, status: {a: 1}}`,
			`{a: 1, generation: 0, resourceTemplateGeneration: 0}`,
		},
		"not what nothing is about": {rules.ReflectTracked("a"), `{metadata: {generation: 5, ` + template + `}}`, `null`},
		"conditions, of a status without those that count": {
			rules.WithConditions(rules.Reflect("a"), rules.Merge{Type: "Ready"}), `{status: {a: 1, conditions: [{type: Other, status: "True"}]}}`, `{a: 1}`,
		},
		"no conditions of nothing": {rules.WithConditions(rules.Reflect("a"), rules.Merge{Type: "Ready"}), `{}`, `null`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed := object(t, tc.observed)
			got, err := tc.rule(observed)
			if err != nil {
				t.Fatal(err)
			}
			want := []map[string]any{object(t, tc.want).Object, object(t, tc.observed).Object}
			if diff := cmp.Diff(want, []map[string]any{got, observed.Object}); diff != "" {
				t.Errorf("reported, and what was given (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReflectFails checks that a rule that fails reports nothing, whatever is
// added to it.
func TestReflectFails(t *testing.T) {
	broken := errors.New("broken")
	fails := func(kinds.Object) (map[string]any, error) { return map[string]any{"a": 1}, broken }
	for name, rule := range map[string]func(kinds.Object) (map[string]any, error){
		"tracked": rules.Track(fails), "with conditions": rules.WithConditions(fails, rules.Merge{Type: "Ready"}),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := rule(object(t, `{status: {}}`)); got != nil || !errors.Is(err, broken) {
				t.Errorf("reported = %v, %v", got, err)
			}
		})
	}
}

// TestParts checks that statuses are sorted by cluster, that one that cannot be
// decoded is an error that names the cluster, and that one that is no object
// counts as none.
func TestParts(t *testing.T) {
	item := func(cluster, status string) workv1alpha2.AggregatedStatusItem {
		return workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Status: raw(status)}
	}
	none := workv1alpha2.AggregatedStatusItem{ClusterName: "a"}
	got, err := rules.Parts([]workv1alpha2.AggregatedStatusItem{item("d", `{"a":1}`), item("c", `[1]`), item("b", ``), none})
	want := []rules.Part{{Cluster: "a"}, {Cluster: "b"}, {Cluster: "c"}, {Cluster: "d", Status: map[string]any{"a": int64(1)}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("parts, %v (-want +got):\n%s", err, diff)
	}
	const refusal = "status of cluster b: unexpected end of JSON input"
	broken := []workv1alpha2.AggregatedStatusItem{item("a", `{}`), item("b", `{"a":`)}
	if got, err := rules.Parts(broken); got != nil || err == nil || err.Error() != refusal {
		t.Errorf("parts = %v, %v, want %s", got, err, refusal)
	}
	if got, err := rules.Aggregate()(object(t, `{}`), broken); got != nil || err == nil || err.Error() != refusal {
		t.Errorf("aggregated = %v, %v, want %s", got, err, refusal)
	}
}

// TestRolledOut checks that an object is healthy once all its replicas are of its
// latest spec and available.
func TestRolledOut(t *testing.T) {
	cases := map[string]struct {
		object string
		want   bool
	}{
		"all there":                {`{metadata: {generation: 2}, spec: {size: 2}, status: {observedGeneration: 2, updatedReplicas: 2, availableReplicas: 2}}`, true},
		"more than there is to be": {`{metadata: {generation: 2}, spec: {size: 1}, status: {observedGeneration: 2, updatedReplicas: 2, availableReplicas: 3}}`, true},
		"an older spec":            {`{metadata: {generation: 2}, spec: {size: 2}, status: {observedGeneration: 1, updatedReplicas: 2, availableReplicas: 2}}`, false},
		"not up to date":           {`{metadata: {generation: 2}, spec: {size: 2}, status: {observedGeneration: 2, updatedReplicas: 1, availableReplicas: 2}}`, false},
		"not available":            {`{metadata: {generation: 2}, spec: {size: 1}, status: {observedGeneration: 2, updatedReplicas: 2, availableReplicas: 1}}`, false},
		"nothing said":             {`{metadata: {generation: 2}, spec: {size: 0}}`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := rules.RolledOut("spec", "size")(object(t, tc.object)); got != tc.want || err != nil {
				t.Errorf("healthy = %v, %v", got, err)
			}
		})
	}
}

// TestHas checks that any value but null counts as set, and that Without returns a
// copy with all else.
func TestHas(t *testing.T) {
	cases := map[string]struct {
		object, without string
		want            bool
	}{
		"zero":              {`{spec: {a: 0, b: 1}}`, `{spec: {b: 1}}`, true},
		"null":              {`{spec: {a: null}}`, `{spec: {}}`, false},
		"nothing":           {`{spec: {b: 1}}`, `{spec: {b: 1}}`, false},
		"a text on the way": {`{spec: a}`, `{spec: a}`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := object(t, tc.object)
			if got := rules.Has("spec", "a")(obj); got != tc.want {
				t.Errorf("has = %v", got)
			}
			want := []any{object(t, tc.without).Object, object(t, tc.object).Object}
			if diff := cmp.Diff(want, []any{rules.Without(obj, "spec", "a").Object, obj.Object}); diff != "" {
				t.Errorf("without, and before (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConditionTrue checks that a condition is true where its status is True,
// whatever else is in the list.
func TestConditionTrue(t *testing.T) {
	given := rules.List(object(t, `{l: [7, {type: A, status: "True"}, {type: B, status: "False"}, {type: C}]}`).Object, "l")
	got := map[string]bool{}
	for _, kind := range []string{"A", "B", "C", "D"} {
		got[kind] = rules.ConditionTrue(given, kind)
	}
	if diff := cmp.Diff(map[string]bool{"A": true, "B": false, "C": false, "D": false}, got); diff != "" {
		t.Errorf("true (-want +got):\n%s", diff)
	}
}
