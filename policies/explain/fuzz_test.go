package explain_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/explain"
)

// FuzzExplain checks that any stored objects can be explained, with the same
// result each time, and that none of them is changed.
func FuzzExplain(f *testing.F) {
	text := func(obj any) string {
		data, err := json.Marshal(obj)
		if err != nil {
			f.Fatal(err)
		}
		return string(data)
	}
	toJSON := func(document string) string {
		data, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			f.Fatal(err)
		}
		return string(data)
	}
	some := text(cluster(f, "c-001", "gold", ""))
	f.Add(toJSON(deployment), text(bound(f)), toJSON(policy), toJSON(overridePolicy), some, "", "")
	f.Add(toJSON(deployment), text(bound(f)), toJSON(policy), toJSON(overridePolicy), some, "{", "[]")
	f.Add(toJSON(deployment), text(bound(f)), toJSON(policy), "{}", some, "null", `{"reason":"NoClusterFit","at":"x"}`)
	f.Add(toJSON(deployment), "{}", "{}", "{}", "{}", `{"clusterAffinities":[{}]}`, `{"reason":"Success"}`)
	f.Add(`{"kind":1,"metadata":[],"spec":{"replicas":-1}}`, `{"spec":{"clusters":[{},{}]}}`, `{"spec":{"resourceSelectors":[{"kind":"x"}]}}`, "{}", "{}", "", "")
	f.Add(strings.Replace(toJSON(deployment), `"replicas":6`, `"replicas":2147483647`, 1), "", toJSON(policy), "", some, "", "")
	f.Add("null", "", "", "", "", "", "")
	f.Fuzz(func(t *testing.T, object, binding, policy, override, cluster, applied, record string) {
		in := explain.Input{Template: &unstructured.Unstructured{}, Now: noon}
		if utiljson.Unmarshal([]byte(object), &in.Template.Object) != nil {
			return
		}
		if b := (&workv1alpha2.ResourceBinding{}); json.Unmarshal([]byte(binding), b) == nil {
			annotations := map[string]string{
				policyv1alpha1.PolicyPlacementAnnotation: applied, workv1alpha2.SchedulingDecisionAnnotation: record,
			}
			for key, value := range b.Annotations {
				if _, ours := annotations[key]; !ours {
					annotations[key] = value
				}
			}
			b.Annotations = annotations
			in.Binding = b
			in.Bindings = []workv1alpha2.Binding{b}
		}
		if p := (&policyv1alpha1.PropagationPolicy{}); json.Unmarshal([]byte(policy), p) == nil {
			in.Policies = append(in.Policies, p)
		}
		if o := (&policyv1alpha1.OverridePolicy{}); json.Unmarshal([]byte(override), o) == nil {
			in.Overrides = append(in.Overrides, o)
		}
		if c := (&clusterv1alpha1.Cluster{}); json.Unmarshal([]byte(cluster), c) == nil {
			in.Clusters = append(in.Clusters, c)
		}
		before := encoded(t, in)
		e := explain.Explain(in)
		first := encoded(t, e) + e.Text(explain.TextOptions{}) + e.Text(explain.TextOptions{All: true}) + e.Only([]string{"c-001"}).Text(explain.TextOptions{})
		again := explain.Explain(in)
		if diff := cmp.Diff(first, encoded(t, again)+again.Text(explain.TextOptions{})+again.Text(explain.TextOptions{All: true})+again.Only([]string{"c-001"}).Text(explain.TextOptions{})); diff != "" {
			t.Errorf("two explanations differ:\n%s", diff)
		}
		if diff := cmp.Diff(before, encoded(t, in)); diff != "" {
			t.Errorf("the input was changed:\n%s", diff)
		}
	})
}

// encoded returns v as JSON.
func encoded(t *testing.T, v any) string {
	t.Helper()
	if in, ok := v.(explain.Input); ok {
		v = []any{in.Template.Object, in.Binding, in.Policies, in.Overrides, in.Clusters}
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
