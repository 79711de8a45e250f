package lua_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
)

// FuzzScript checks that, whatever the script, each operation returns within its
// budget and does not change its arguments.
func FuzzScript(f *testing.F) {
	for _, body := range costly {
		f.Add(body)
	}
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add(`return obj`)
	f.Add(`return {obj}`)
	f.Add(`obj.x = {} obj.y = {obj.x} return obj`)
	m := lua.New(lua.Options{Steps: 20_000, Memory: 1 << 20})
	obj := object(f, webDeployment)
	before := obj.DeepCopy()
	f.Fuzz(func(t *testing.T, body string) {
		for function := range functionNames {
			r, problems := m.Rules(only(function, "function "+function+"(obj, other) "+body+"\nend"))
			err := ask(r, obj)
			if len(problems) > 0 && err == nil {
				t.Error("a script that does not compile answers")
			}
			if strings.ContainsAny(text(err), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
		}
		if diff := cmp.Diff(before.Object, obj.Object); diff != "" {
			t.Fatalf("the object was changed:\n%s", diff)
		}
	})
}

// FuzzObject checks that, whatever the object, a script that iterates over all of
// it returns it unchanged, and no rule panics.
func FuzzObject(f *testing.F) {
	f.Add(`{"a":[],"b":{},"c":[1,2.5,null,{"d":[[]]}],"e":null,"f":9223372036854775807,"g":1e300,"h":-0.0}`)
	f.Add(`{"conditions":[{"type":"Ready","status":true}],"phase":{"a":1},"":"","1":1}`)
	f.Add(`{"a":[null],"b":[[null,1],{"x":null}],"c":123456789012345678901234567890}`)
	f.Add(`[]`)
	f.Add(`"text"`)
	m := lua.New(lua.Options{})
	r, problems := m.Rules(configv1alpha1.CustomizationRules{
		ReplicaRevision: code(`
local function walk(t)
  if type(t) ~= "table" then return t end
  local n = #t
  for k, v in pairs(t) do t[k] = walk(v) end
  return t
end
function ReviseReplica(obj, n) return walk(obj) end`),
		StatusReflection:  code(`function ReflectStatus(obj) return obj.status end`),
		StatusAggregation: code(`function AggregateStatus(obj, items) for i = 1, #items do obj.status = items[i].status end return obj end`),
	})
	if len(problems) > 0 {
		f.Fatal(problems)
	}
	f.Fuzz(func(t *testing.T, status string) {
		var decoded any
		if utiljson.Unmarshal([]byte(status), &decoded) != nil || strings.Count(status, "[")+strings.Count(status, "{") > 50 {
			return
		}
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "X", "status": decoded}}
		before := obj.DeepCopy()
		revised, err := r.Revise(obj, 1)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before.Object, revised.Object); diff != "" {
			t.Errorf("gone through (-want +got):\n%s", diff)
		}
		reflected, err := r.Reflect(obj)
		if want, ok := decoded.(map[string]any); ok && (err != nil || !cmp.Equal(want, reflected)) {
			t.Errorf("reflected %v: %v", reflected, err)
		}
		raw, err := json.Marshal(decoded)
		if err != nil {
			t.Fatal(err)
		}
		items := []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Status: &runtime.RawExtension{Raw: raw}}}
		if _, err := r.Aggregate(obj, items); err != nil && strings.ContainsAny(err.Error(), "\n") {
			t.Errorf("an error of several lines: %q", err)
		}
		if diff := cmp.Diff(before.Object, obj.Object); diff != "" {
			t.Fatalf("the object was changed:\n%s", diff)
		}
	})
}

var functionNames = map[string]bool{
	"Retain": true, "GetReplicas": true, "GetComponents": true, "ReviseReplica": true, "ReflectStatus": true,
	"AggregateStatus": true, "InterpretHealth": true, "GetDependencies": true,
}
