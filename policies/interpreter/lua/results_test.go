package lua_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
)

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestNonsense checks that a result that cannot be used is an error that explains
// why, on one line.
func TestNonsense(t *testing.T) {
	const cfg = `{apiVersion: v1, kind: X, metadata: {name: x, namespace: ns}, spec: {replicas: 1}, status: {a: 1}}`
	cases := map[string]struct{ function, body, want string }{
		"no boolean":                         {"InterpretHealth", `return 1`, "healthInterpretation: InterpretHealth returns a number instead of true or false"},
		"nothing for a boolean":              {"InterpretHealth", ``, "healthInterpretation: InterpretHealth returns a nil instead of true or false"},
		"an error":                           {"InterpretHealth", `error("it is broken")`, "healthInterpretation:1: it is broken"},
		"an error of several lines":          {"InterpretHealth", `error("it\nis\n\tbroken", 0)`, "healthInterpretation: it is broken"},
		"an error that is a table":           {"InterpretHealth", `error({message = "it is broken"})`, "healthInterpretation: it is broken"},
		"an error that is a table of its":    {"InterpretHealth", `error({})`, "healthInterpretation: it raised a table"},
		"an error that is nothing":           {"InterpretHealth", `error()`, "healthInterpretation: it raised a nil"},
		"an error that is huge":              {"InterpretHealth", `error(("x"):rep(1e6), 0)`, "healthInterpretation: " + strings.Repeat("x", 512) + "…"},
		"an error of long characters":        {"InterpretHealth", `error(("€"):rep(1e6), 0)`, "healthInterpretation: " + strings.Repeat("€", 170) + "…"},
		"an error of bytes":                  {"InterpretHealth", `error("a\255b", 0)`, "healthInterpretation: a?b"},
		"a nil that is indexed":              {"InterpretHealth", "\n\nreturn obj.status.x.y", "healthInterpretation:3: attempt to index a non-table object(nil) with key 'y'"},
		"a nil that is called":               {"InterpretHealth", "\nreturn os.execute('ls')", "healthInterpretation:2: attempt to call a non-function object"},
		"an assertion":                       {"InterpretHealth", `assert(obj.nothing, "there is nothing")`, "healthInterpretation: there is nothing"},
		"replicas that are no number":        {"GetReplicas", `return "3"`, "replicaResource: GetReplicas returns replicas that are a string"},
		"replicas that are nothing":          {"GetReplicas", `return nil`, "replicaResource: GetReplicas returns replicas that are a nil"},
		"replicas that are negative":         {"GetReplicas", `return -1`, "replicaResource: GetReplicas returns replicas that are -1"},
		"replicas that are half":             {"GetReplicas", `return 0.5`, "replicaResource: GetReplicas returns replicas that are 0.5"},
		"replicas that are too many":         {"GetReplicas", `return 2^31`, "replicaResource: GetReplicas returns replicas that are 2.147483648e+09"},
		"replicas that are no number at all": {"GetReplicas", `return 0/0`, "replicaResource: GetReplicas returns replicas that are NaN"},
		"requirements of another type":       {"GetReplicas", `return 1, "much"`, "replicaResource: GetReplicas returns requirements: is a string"},
		"requirements of another shape":      {"GetReplicas", `return 1, {nodeClaim = {nodeSelector = {disk = 1}}}`, "replicaResource: GetReplicas returns requirements: cannot convert int64 to string"},
		"requirements that are no quantity":  {"GetReplicas", `return 1, {resourceRequest = {cpu = "much"}}`, "replicaResource: GetReplicas returns requirements: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
		"requirements that are negative":     {"GetReplicas", `return 1, {resourceRequest = {cpu = "-1"}}`, "replicaResource: GetReplicas returns requirements: cpu is negative"},
		"requirements that take hours":       {"GetReplicas", `return 1, {resourceRequest = {cpu = "1e999999999"}}`, `replicaResource: GetReplicas returns requirements: resourceRequest.cpu: "1e999999999" is no quantity`},
		"components that are no list":        {"GetComponents", `return {a = 1}`, "componentResource: GetComponents returns components: cannot restore slice from map"},
		"components without names":           {"GetComponents", `return {{replicas = 1}}`, "componentResource: GetComponents returns component 1 without a name"},
		"components of the same name":        {"GetComponents", `return {{name = "a"}, {name = "a"}}`, `componentResource: GetComponents returns two components named "a"`},
		"components with negative replicas":  {"GetComponents", `return {{name = "a", replicas = -1}}`, `componentResource: GetComponents returns component "a" with -1 replicas`},
		"a name that is huge":                {"ReflectStatus", `return {[("x\n"):rep(1e5)] = print}`, "statusReflection: ReflectStatus returns a table in which " + strings.Repeat("x ", 255) + "x…: is a function"},
		"another object":                     {"ReviseReplica", `obj.metadata.name = "y" return obj`, `replicaRevision: ReviseReplica returns another object: its metadata.name is "y" instead of "x"`},
		"another kind":                       {"ReviseReplica", `obj.kind = nil return obj`, `replicaRevision: ReviseReplica returns another object: its kind is "" instead of "X"`},
		"another namespace":                  {"Retain", `obj.metadata.namespace = "kube-system" return obj`, `retention: Retain returns another object: its metadata.namespace is "kube-system" instead of "ns"`},
		"no object":                          {"Retain", `return 7`, "retention: Retain returns a number instead of a table"},
		"nothing for an object":              {"Retain", ``, "retention: Retain returns a nil instead of a table"},
		"a function in an object":            {"Retain", `obj.spec.f = print return obj`, "retention: Retain returns a table in which spec.f: is a function"},
		"a number that is none":              {"Retain", `obj.spec.f = 0/0 return obj`, "retention: Retain returns a table in which spec.f: is NaN, which is no number in an object"},
		"a number without an end":            {"Retain", `obj.spec.f = {1, -1/0} return obj`, "retention: Retain returns a table in which spec.f.1: is -Inf, which is no number in an object"},
		"an object in itself":                {"Retain", `obj.spec.f = obj return obj`, "retention: Retain returns a table in which" + strings.Repeat(" spec.f", 1)},
		"an object in itself many times":     {"Retain", `local t = {} for i = 1, 40 do t = {t, t} end obj.spec.f = t return obj`, "retention: Retain returns a table in which spec.f"},
		"names and numbers":                  {"Retain", `obj.spec.f = {1, a = 2} return obj`, "retention: Retain returns a table in which spec.f: is a table with names and numbers as keys"},
		"keys that are no names":             {"Retain", `obj.spec.f = {[true] = 2} return obj`, "retention: Retain returns a table in which spec.f: is a table whose keys are neither names nor numbers from 1 on"},
		"a list with a hole":                 {"Retain", `obj.spec.f = {1, nil, 3} return obj`, "retention: Retain returns a table in which spec.f.1: is nil within a list"},
		"bytes":                              {"Retain", `obj.spec.f = "\255" return obj`, "retention: Retain returns a table in which spec.f: is no text in UTF-8"},
		"a key of bytes":                     {"Retain", `obj.spec.f = {["\255"] = 1} return obj`, "retention: Retain returns a table in which spec.f: has a key that is no text in UTF-8"},
		"a text that is too long":            {"Retain", `obj.spec.f = ("x"):rep(3e6) return obj`, "retention: Retain returns a table in which spec.f: is larger than 2048 KiB"},
		"a status that is a list":            {"ReflectStatus", `return {1}`, "statusReflection: ReflectStatus returns a list instead of a table with names"},
		"a status that is a text":            {"ReflectStatus", `return "ok"`, "statusReflection: ReflectStatus returns a string instead of a table"},
		"no object to take a status of":      {"AggregateStatus", `return true`, "statusAggregation: AggregateStatus returns a boolean instead of the object"},
		"a dependency without a kind":        {"GetDependencies", `return {{apiVersion = "v1", name = "x"}}`, "dependencyInterpretation: GetDependencies returns dependency 1, which has no kind"},
		"a dependency without an API":        {"GetDependencies", `return {{kind = "Secret", name = "x"}}`, "dependencyInterpretation: GetDependencies returns dependency 1, which has no apiVersion"},
		"a dependency of no API":             {"GetDependencies", `return {{apiVersion = "a/b/c", kind = "Secret", name = "x"}}`, `dependencyInterpretation: GetDependencies returns dependency 1, which has the apiVersion "a/b/c", which is none`},
		"a dependency on nothing":            {"GetDependencies", `return {{apiVersion = "v1", kind = "Secret"}}`, "dependencyInterpretation: GetDependencies returns dependency 1, which has neither a name nor a labelSelector"},
		"a selector that selects nothing":    {"GetDependencies", `return {{apiVersion = "v1", kind = "Secret", labelSelector = {matchExpressions = {{key = "a", operator = "Near"}}}}}`, `dependencyInterpretation: GetDependencies returns dependency 1, which has a labelSelector that cannot be used: "Near" is not a valid label selector operator`},
		"dependencies that are no list":      {"GetDependencies", `return "all"`, "dependencyInterpretation: GetDependencies returns dependencies: cannot restore slice from string"},
	}
	m := lua.New(lua.Options{})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, problems := m.Rules(only(tc.function, fmt.Sprintf("function %s(obj, other) %s end", tc.function, tc.body)))
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			got := text(ask(r, object(t, cfg)))
			if got != tc.want && !(strings.HasPrefix(got, tc.want) && strings.Contains(name, "itself")) {
				t.Errorf("error = %s\nwant    %s", got, tc.want)
			}
			if strings.ContainsAny(got, "\n\t") || len(got) > 700 {
				t.Errorf("the error is no line: %q", got)
			}
		})
	}
}

// only returns rules that have one script.
func only(function, source string) (out configv1alpha1.CustomizationRules) {
	*map[string]**configv1alpha1.CustomizationScript{
		"Retain": &out.Retention, "GetReplicas": &out.ReplicaResource, "GetComponents": &out.ComponentResource,
		"ReviseReplica": &out.ReplicaRevision, "ReflectStatus": &out.StatusReflection, "AggregateStatus": &out.StatusAggregation,
		"InterpretHealth": &out.HealthInterpretation, "GetDependencies": &out.DependencyInterpretation,
	}[function] = code(source)
	return out
}

// ask calls the only rule that is not nil.
func ask(r kinds.Rules, obj kinds.Object) (err error) {
	switch {
	case r.Retain != nil:
		_, err = r.Retain(obj, obj.DeepCopy())
	case r.Replicas != nil:
		_, _, err = r.Replicas(obj)
	case r.Components != nil:
		_, err = r.Components(obj)
	case r.Revise != nil:
		_, err = r.Revise(obj, 2)
	case r.Reflect != nil:
		_, err = r.Reflect(obj)
	case r.Aggregate != nil:
		_, err = r.Aggregate(obj, []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1"}})
	case r.Health != nil:
		_, err = r.Health(obj)
	case r.Dependencies != nil:
		_, err = r.Dependencies(obj)
	}
	return err
}

// TestKept checks that what a script did not touch stays as it was, to the last
// bit.
func TestKept(t *testing.T) {
	const before = `
apiVersion: v1
kind: X
metadata: {name: x, finalizers: [], labels: {}, managedFields: null}
spec:
  list: []
  object: {}
  nested: {list: [], object: {}, deep: [{a: []}, {a: {}}, [], {}]}
  huge: 9223372036854775807
  small: -9007199254740993
  half: 0.5
  one: 1.0
  numbers: [9007199254740993, 1, 2.5, null]
  text: "1"
  "odd key/with.dots": {"": 1, "ключ": true, "1": x}
  "null": null
`
	cases := map[string]struct {
		body string
		edit func(spec map[string]any)
	}{
		"nothing touched":          {`return obj`, func(map[string]any) {}},
		"all looked at":            {`local function walk(t) for k, v in pairs(t) do if type(v) == "table" then walk(v) end end end walk(obj) return obj`, func(map[string]any) {}},
		"all copied":               {`local function copy(t) if type(t) ~= "table" then return t end local c = {} for k, v in pairs(t) do c[k] = copy(v) end return c end obj.spec = copy(obj.spec) return obj`, func(s map[string]any) {}},
		"a list moved":             {`obj.spec.object = obj.spec.list return obj`, func(s map[string]any) { s["object"] = []any{} }},
		"an object moved":          {`obj.spec.list = obj.spec.object return obj`, func(s map[string]any) { s["list"] = map[string]any{} }},
		"a list emptied":           {`obj.spec.numbers = {} return obj`, func(s map[string]any) { s["numbers"] = []any{} }},
		"an object emptied":        {`obj.spec.nested.deep[2].a = {} return obj`, func(map[string]any) {}},
		"an element added":         {`table.insert(obj.spec.list, {a = 1}) return obj`, func(s map[string]any) { s["list"] = []any{map[string]any{"a": int64(1)}} }},
		"a new list that is empty": {`obj.spec.new = {} return obj`, func(s map[string]any) { s["new"] = []any{} }},
		"a field removed":          {`obj.spec.half = nil return obj`, func(s map[string]any) { delete(s, "half") }},
		"a number counted up":      {`obj.spec.half = obj.spec.half + 0.5 obj.spec.one = obj.spec.one + 1 return obj`, func(s map[string]any) { s["half"] = int64(1); s["one"] = int64(2) }},
		"a number at the limit":    {`obj.spec.half = 1e18 obj.spec.text = 2^53 obj.spec.one = -0.25 return obj`, func(s map[string]any) { s["half"] = int64(1e18); s["text"] = int64(1 << 53); s["one"] = -0.25 }},
		"a number beyond":          {`obj.spec.half = 2^63 return obj`, func(s map[string]any) { s["half"] = math.Pow(2, 63) }},
	}
	m := lua.New(lua.Options{})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, _ := m.Rules(only("ReviseReplica", "function ReviseReplica(obj, n) "+tc.body+" end"))
			in := object(t, before)
			in.Object["spec"].(map[string]any)["one"] = 1.0
			want := in.DeepCopy()
			tc.edit(want.Object["spec"].(map[string]any))
			kept := in.DeepCopy()
			got, err := r.Revise(in, 1)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Object, got.Object); diff != "" {
				t.Errorf("revised (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(kept.Object, in.Object); diff != "" {
				t.Errorf("the object that came in was changed:\n%s", diff)
			}
			overwrite(got.Object)
			if diff := cmp.Diff(kept.Object, in.Object); diff != "" {
				t.Errorf("the answer shares with the object that came in:\n%s", diff)
			}
		})
	}
}

// overwrite changes everything in a value that can be changed.
func overwrite(x any) {
	switch x := x.(type) {
	case map[string]any:
		for k, v := range x {
			overwrite(v)
			x[k] = "overwritten"
		}
	case []any:
		for i, v := range x {
			overwrite(v)
			x[i] = "overwritten"
		}
	}
}

// TestFresh checks that nothing is carried from one call to the next, or from one
// customization to another.
func TestFresh(t *testing.T) {
	m := lua.New(lua.Options{})
	obj := object(t, webDeployment)
	dirty := health(t, m, `
count = (count or 0) + 1
function InterpretHealth(obj)
  local was = count == 1 and string.upper("a") == "A" and table.x == nil and math.pi > 3 and kube == nil and _G.pairs == pairs
  count = 7
  _G.extra = 1
  string.upper, string.len, table.x, math.pi, pairs = nil, nil, 1, 0, nil
  kube = require("kube")
  kube.resourceAdd = nil
  obj.status.replicas = 99
  return was and extra == 1
end`)
	clean := health(t, m, `
function InterpretHealth(obj)
  return count == nil and extra == nil and ("a"):upper() == "A" and #("a") == 1 and ("x"):len() == 1 and table.x == nil and pairs ~= nil
    and require("kube").resourceAdd ~= nil and obj.status.replicas == 3
end`)
	for i := range 20 {
		if ok, err := dirty(obj); !ok || err != nil {
			t.Fatalf("call %d: %v %v", i, ok, err)
		}
		if ok, err := clean(obj); !ok || err != nil {
			t.Fatalf("call %d: %v %v", i, ok, err)
		}
	}
}

// TestShared checks that a machine runs concurrent calls.
func TestShared(t *testing.T) {
	m := lua.New(lua.Options{})
	r, problems := m.Rules(deploymentScripts)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	bad := health(t, m, costlyScript)
	obj := object(t, webDeployment)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 20 {
				if i == 0 {
					if _, err := bad(obj); err == nil {
						t.Error("not stopped")
					}
					continue
				}
				n, _, err := r.Replicas(obj)
				revised, err2 := r.Revise(obj, 5)
				if n != 3 || err != nil || err2 != nil {
					t.Error(n, err, err2)
					return
				}
				if got, _, _ := unstructured.NestedInt64(revised.Object, "spec", "replicas"); got != 5 {
					t.Error("revised to", got)
				}
			}
		})
	}
	group.Wait()
}

const costlyScript = `function InterpretHealth(obj) local t = {} while true do t[#t + 1] = {} end end`

// TestClock checks that a script is stopped by the clock, too, unless it is a
// short one.
func TestClock(t *testing.T) {
	now := clock()
	m := lua.New(lua.Options{Steps: 1 << 40, Now: func() time.Time {
		now = now.Add(time.Second) // each reading of the clock takes a second
		return now
	}})
	obj := object(t, webDeployment)
	_, err := health(t, m, `function InterpretHealth(obj) while true do end end`)(obj)
	if want := "healthInterpretation:1: stopped: it took more than 80ms"; text(err) != want {
		t.Errorf("error = %v, want %q", err, want)
	}
	if ok, err := health(t, m, `function InterpretHealth(obj) for i = 1, 100 do end return true end`)(obj); !ok || err != nil {
		t.Errorf("a short script is judged by the clock: %v", err)
	}
}

// TestLayer checks that the customizations of a kind apply in the order of their
// names.
func TestLayer(t *testing.T) {
	custom := func(name, kind string, rules configv1alpha1.CustomizationRules) *configv1alpha1.ResourceInterpreterCustomization {
		c := &configv1alpha1.ResourceInterpreterCustomization{}
		c.Name = name
		c.Spec.Target = configv1alpha1.CustomizationTarget{APIVersion: "example.io/v1", Kind: kind}
		c.Spec.Customizations = rules
		return c
	}
	needs := func(name string) *configv1alpha1.CustomizationScript {
		return code(`function GetDependencies(obj) return {{apiVersion = "v1", kind = "Secret", namespace = "n", name = "` + name + `"},
			{apiVersion = "v1", kind = "ConfigMap", namespace = "n", name = "all"}} end`)
	}
	layer, problems := lua.New(lua.Options{}).Layer([]*configv1alpha1.ResourceInterpreterCustomization{
		custom("b", "App", configv1alpha1.CustomizationRules{
			HealthInterpretation:     code(`function InterpretHealth(obj) return false end`),
			ReplicaResource:          code(`function GetReplicas(obj) return 2 end`),
			DependencyInterpretation: needs("b"),
		}),
		custom("a", "App", configv1alpha1.CustomizationRules{
			HealthInterpretation:     code(`function InterpretHealth(obj) return true end`),
			DependencyInterpretation: needs("a"),
			Retention:                code(`function Retain(`),
		}),
		custom("c", "App", configv1alpha1.CustomizationRules{Retention: code(`function Retain(desired) return desired end`)}),
		custom("d", "Other", configv1alpha1.CustomizationRules{ReplicaRevision: code(`function revise() end`), StatusReflection: code("")}),
	})
	r := layer.Rules(schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "App"})
	obj := object(t, `{apiVersion: example.io/v1, kind: App, metadata: {name: x, namespace: n}}`)
	healthy, err := r.Health(obj)
	n, req, err2 := r.Replicas(obj)
	deps, err3 := r.Dependencies(obj)
	if !healthy || n != 2 || req != nil || err != nil || err2 != nil || err3 != nil {
		t.Errorf("healthy %v, replicas %d %v, errors %v %v %v", healthy, n, req, err, err2, err3)
	}
	dep := func(kind, name string) kinds.Dependency {
		return kinds.Dependency{APIVersion: "v1", Kind: kind, Namespace: "n", Name: name}
	}
	if diff := cmp.Diff([]kinds.Dependency{dep("ConfigMap", "all"), dep("Secret", "a"), dep("Secret", "b")}, deps); diff != "" {
		t.Errorf("dependencies (-want +got):\n%s", diff)
	}
	if _, err := r.Retain(obj, obj); !strings.HasPrefix(text(err), "a/retention at EOF") {
		t.Errorf("retain of a script that does not compile = %v", err)
	}
	var reported []string
	for _, p := range problems {
		reported = append(reported, p.Name+" "+p.Operation+": "+p.Err.Error())
	}
	want := []string{
		`a retention: a/retention at EOF: syntax error`,
		`d replicaRevision: d/replicaRevision: ReviseReplica: the function is not defined`,
	}
	if diff := cmp.Diff(want, reported); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestLarge checks that the cost of an object near the size limit depends on what
// a script looks at.
func TestLarge(t *testing.T) {
	obj := object(t, webDeployment)
	entries := map[string]any{}
	for i := range 60000 {
		entries[fmt.Sprintf("key-%05d", i)] = map[string]any{"value": "some text or other"}
	}
	obj.Object["data"] = entries
	m := lua.New(lua.Options{})
	if ok, err := health(t, m, `function InterpretHealth(obj) return obj.status.replicas == obj.spec.replicas end`)(obj); !ok || err != nil {
		t.Errorf("what looks at little of it: %v %v", ok, err)
	}
	_, err := health(t, m, `function InterpretHealth(obj) local n = 0 for k, v in pairs(obj.data) do n = n + 1 end return n > 0 end`)(obj)
	if want := "healthInterpretation:1: stopped: it took more than 16384 KiB of memory"; text(err) != want {
		t.Errorf("error = %v, want %q", err, want)
	}
}
