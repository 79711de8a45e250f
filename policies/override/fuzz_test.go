package override_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/override"
)

// FuzzPointer: what is taken for a pointer leads to the same place in our hands
// and in those of the library for patches.
func FuzzPointer(f *testing.F) {
	for _, s := range []string{"", "/", "/a", "a", "/a~1b", "/~0~1", "/~01", "/~2", "/~", "//", "/a/0", "/a/-", "/a/-1", "/a/01", "/é", "/\xff"} {
		f.Add(s, "k")
	}
	f.Fuzz(func(t *testing.T, path, key string) {
		valid := override.CheckPointer(path) == nil
		obj := configMap(key, `{"x":1}`)
		_, err := apply(obj, east(), []policyv1alpha1.Override{policyOf(policyv1alpha1.Overriders{
			FieldOverrider: []policyv1alpha1.FieldOverrider{{FieldPath: path, JSON: []policyv1alpha1.JSONPatchOperation{{SubPath: "/x", Operator: "replace", Value: raw("2")}}}},
		})})
		if err == nil && !valid {
			t.Fatalf("%q is no pointer and leads somewhere", path)
		}
		if err != nil {
			return
		}
		again := configMap(key, `{"x":1}`)
		if _, err := apply(again, east(), []policyv1alpha1.Override{policyOf(policyv1alpha1.Overriders{
			Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: path, Operator: "replace", Value: raw(`"{\"x\":2}"`)}},
		})}); err != nil {
			t.Fatalf("%q leads a field somewhere, but not a patch: %v", path, err)
		}
		if diff := cmp.Diff(obj.Object, again.Object); diff != "" && json.Valid([]byte(key)) {
			t.Fatalf("%q leads to two places:\n%s", path, diff)
		}
	})
}

// FuzzPatch: no patch crashes, and one that is applied leaves the object's
// identity and can be encoded again.
func FuzzPatch(f *testing.F) {
	f.Add("/spec/replicas", "replace", "3", "/data", "add")
	f.Add("/spec/template/spec/containers/-1", "remove", "", "/x/y", "remove")
	f.Add("", "replace", "null", "/", "add")
	f.Add("/spec/~2", "add", "{", "//", "replace")
	f.Add("/spec", "add", `{"a":[1,{"b":null}]}`, "/spec/a/1/b", "add")
	f.Add("/spec/a", "add", "null", "/spec/a/b", "add")
	f.Fuzz(func(t *testing.T, path, op, value, secondPath, secondOp string) {
		checkApply(t, deployment(), policyOf(policyv1alpha1.Overriders{
			Plaintext: []policyv1alpha1.PlaintextOverrider{
				{Path: path, Operator: policyv1alpha1.OverriderOperator(op), Value: raw(value)},
				{Path: secondPath, Operator: policyv1alpha1.OverriderOperator(secondOp), Value: raw(value)},
			},
		}))
	})
}

// FuzzField: nothing in a string crashes the field overrider, and a string it
// stays.
func FuzzField(f *testing.F) {
	f.Add("a: 1\n", "/a", "add", "2", true)
	f.Add(`{"a":[1]}`, "/a/0", "replace", `"x"`, false)
	f.Add("a: &a [*a]", "/a", "add", "2", true)
	f.Add("a: &a [x]\nb: [*a,*a]\nc: {<<: *a}", "/b", "add", "2", true)
	f.Add("a: 1\n---\nb: 2\n", "/b", "remove", "", true)
	f.Add("%YAML 1.1\n---\n", "", "add", "{}", true)
	f.Add("[]", "/-", "add", "null", false)
	f.Add("null", "", "add", "[null]", false)
	f.Fuzz(func(t *testing.T, text, path, op, value string, isYAML bool) {
		o := policyv1alpha1.FieldOverrider{FieldPath: "/data/k"}
		step := policyv1alpha1.YAMLPatchOperation{SubPath: path, Operator: policyv1alpha1.OverriderOperator(op), Value: raw(value)}
		if isYAML {
			o.YAML = []policyv1alpha1.YAMLPatchOperation{step, step}
		} else {
			o.JSON = []policyv1alpha1.JSONPatchOperation{policyv1alpha1.JSONPatchOperation(step), policyv1alpha1.JSONPatchOperation(step)}
		}
		obj := configMap("k", text)
		checkApply(t, obj, policyOf(policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{o}}))
		if _, ok := lookup(obj.Object, "/data/k").(string); !ok {
			t.Fatalf("is no string any more: %v", obj)
		}
	})
}

// FuzzApply: no rules crash on no object.
func FuzzApply(f *testing.F) {
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":"p","labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"i:1","args":["x"]}]}}`
	for _, rules := range []string{
		`[{"overriders":{"imageOverrider":[{"component":"Tag","operator":"add","value":"-x"}]}}]`,
		`[{"targetCluster":{"clusterNames":["east"]},"overriders":{"argsOverrider":[{"containerName":"a","operator":"remove","value":["x"]}]}}]`,
		`[{"overriders":{"labelsOverrider":[{"operator":"replace","value":{"a":"c"}}],"annotationsOverrider":[{"operator":"add","value":{"a":"c"}}]}}]`,
		`[{"overriders":{"plaintext":[{"path":"/spec/containers/0","operator":"replace","value":3}]}},{"overriders":{"commandOverrider":[{"containerName":"a","operator":"add","value":["y"]}]}}]`,
		`[{"overriders":{"fieldOverrider":[{"fieldPath":"/spec/containers/0/image","yaml":[{"subPath":"","operator":"replace","value":{}}]}]}}]`,
		`[{"overriders":{"imageOverrider":[{"predicate":{"path":"/metadata/name"},"component":"Repository","operator":"replace","value":"q"}]}}]`,
	} {
		f.Add(rules, pod)
		f.Add(rules, `{"kind":"Deployment","metadata":{"name":"d","namespace":"shop"},"spec":{"template":{"spec":{"containers":[null,{"name":1},{"name":"a","args":"x"}]}}}}`)
	}
	f.Fuzz(func(t *testing.T, rules, object string) {
		policy := &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "cop"}}
		obj := &unstructured.Unstructured{}
		if json.Unmarshal([]byte(rules), &policy.Spec.OverrideRules) != nil || obj.UnmarshalJSON([]byte(object)) != nil {
			return
		}
		checkApply(t, obj, policy)
	})
}

// checkApply applies one policy to obj and checks what must hold whatever they
// are: errors are typed, the object stays itself and can be encoded, nothing
// else is changed, and the same comes out each time.
func checkApply(t *testing.T, obj *unstructured.Unstructured, policy policyv1alpha1.Override) {
	t.Helper()
	before, again := policy.DeepCopyObject(), obj.DeepCopy()
	identity := []string{obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace(), obj.GetName()}
	_, err := apply(obj, east(), []policyv1alpha1.Override{policy})
	_, second := apply(again, east(), []policyv1alpha1.Override{policy})
	if message(err) != message(second) {
		t.Fatalf("two answers to one question: %v, %v", err, second)
	}
	if diff := cmp.Diff(before, policy.DeepCopyObject()); diff != "" {
		t.Fatalf("the policy was changed:\n%s", diff)
	}
	var typed *override.Error
	if err != nil {
		if !errors.As(err, &typed) {
			t.Fatalf("error %v has no place", err)
		}
		return
	}
	if diff := cmp.Diff(identity, []string{obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace(), obj.GetName()}); diff != "" {
		t.Fatalf("became another object:\n%s", diff)
	}
	first, err := json.Marshal(obj.Object)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := json.Marshal(again.Object); err != nil || string(first) != string(other) {
		t.Fatalf("two outcomes, %v:\n%s\n%s", err, first, other)
	}
}
