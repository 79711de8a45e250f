package words_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// object returns an object of the namespace shop whose other fields are given as YAML.
func object(t *testing.T, fields string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(fields))
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	if err == nil {
		err = utiljson.Unmarshal(data, &obj.Object)
	}
	if err != nil {
		t.Fatalf("%v:\n%s", err, fields)
	}
	obj.SetAPIVersion("x.io/v1")
	obj.SetKind("Train")
	obj.SetNamespace("shop")
	return obj
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// part returns a component that requests an amount of cpu; empty for none.
func part(name string, replicas int32, cpu string) workv1alpha2.Component {
	c := workv1alpha2.Component{Name: name, Replicas: replicas}
	if cpu != "" {
		c.ReplicaRequirements = &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	}
	return c
}

// TestComponents checks how the components of a workload are named, how many
// replicas they have, and what each needs.
func TestComponents(t *testing.T) {
	const pods = `template: {spec: {containers: [{name: a, resources: {requests: {cpu: 1}}}]}}`
	roles := words.Roles("spec.roles")
	tasks := words.Tasks("spec.tasks", "template", func(task map[string]any) int64 { return words.CountOr(2, task, "replicas") })
	long := strings.Repeat("n", 40)
	for name, tc := range map[string]struct {
		of     func(kinds.Object) (words.Components, error)
		object string
		want   words.Components
		err    string
	}{
		"roles are sorted, one replica each":    {of: roles, object: `{spec: {roles: {Worker: {` + pods + `}, Head: {replicas: 3}}}}`, want: words.Components{part("head", 3, ""), part("worker", 1, "1")}},
		"no roles":                              {of: roles, object: `{spec: {}}`},
		"tasks keep their order":                {of: tasks, object: `{spec: {tasks: [{name: b, replicas: 1}, {name: a, ` + pods + `}]}}`, want: words.Components{part("b", 1, ""), part("a", 2, "1")}},
		"tasks of one name, and of none":        {of: tasks, object: `{spec: {tasks: [{name: a}, {name: a}, {}]}}`, want: words.Components{part("a", 2, ""), part("a-2", 2, ""), part("-2", 2, "")}},
		"names are cut, and stay apart":         {of: tasks, object: `{spec: {tasks: [{name: ` + long + `}, {name: ` + long + `}]}}`, want: words.Components{part(long[:32], 2, ""), part(long[:30]+"-2", 2, "")}},
		"no number of replicas":                 {of: tasks, object: `{spec: {tasks: [{name: a, replicas: -1}, {name: b}]}}`, want: words.Components{part("b", 2, "")}, err: "component a: -1 is no number of replicas"},
		"the first fault is reported":           {of: tasks, object: `{spec: {tasks: [{name: a, replicas: -1}, {name: b, replicas: 9999999999}]}}`, err: "component a: -1 is no number of replicas"},
		"a limit counts where nothing is asked": {of: tasks, object: `{spec: {tasks: [{name: a, template: {spec: {containers: [{name: a, resources: {limits: {cpu: 2}}}]}}}]}}`, want: words.Components{part("a", 2, "2")}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.of(object(t, tc.object))
			if diff := cmp.Diff(tc.want, got); diff != "" || message(err) != tc.err {
				t.Errorf("components (-want +got):\n%s%q, want %q", diff, message(err), tc.err)
			}
		})
	}
	var r words.Roster
	r.Pods("a", 1, map[string]any{"containers": []any{map[string]any{"resources": map[string]any{"requests": map[string]any{"cpu": "much"}}}}})
	if _, err := r.Result(); err == nil || !strings.HasPrefix(err.Error(), "component a: ") {
		t.Errorf("a quantity that is none: %v", err)
	}
	r.Fail("b", errors.New("it is later"))
	if _, err := r.Result(); strings.Contains(err.Error(), "later") {
		t.Errorf("a later fault replaced the first: %v", err)
	}
}

// TestReplicas checks the number of replicas with and without the field, and what
// each needs.
func TestReplicas(t *testing.T) {
	count := words.Replicas("spec.size", 3, "spec.template")
	for name, tc := range map[string]struct {
		object string
		want   int32
		cpu    string
		fails  bool
	}{
		"none is given":       {object: `{spec: {}}`, want: 3},
		"zero is a number":    {object: `{spec: {size: 0}}`},
		"what each needs":     {object: `{spec: {size: 2, template: {spec: {containers: [{name: a, resources: {requests: {cpu: 1}, limits: {cpu: 4}}}]}}}}`, want: 2, cpu: "1"},
		"more than there are": {object: `{spec: {size: 9999999999}}`, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			n, need, err := count(object(t, tc.object))
			cpu := ""
			if need != nil {
				cpu = need.ResourceRequest.Cpu().String()
			}
			if n != tc.want || cpu != tc.cpu || (err != nil) != tc.fails {
				t.Errorf("%d of cpu %q, %v", n, cpu, err)
			}
		})
	}
}

// TestNeedsOfOneReplica checks that a priority class, more resources and sidecars
// are added to what was requested, or to nothing.
func TestNeedsOfOneReplica(t *testing.T) {
	cpu := func(n string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
	}
	for name, tc := range map[string]struct{ got, want *words.Needed }{
		"no class":                   {words.Classed("shop", nil, ""), nil},
		"a class alone":              {words.Classed("shop", nil, "high"), &words.Needed{Namespace: "shop", PriorityClassName: "high"}},
		"a class beside other needs": {words.Classed("shop", &words.Needed{ResourceRequest: cpu("1")}, "high"), &words.Needed{ResourceRequest: cpu("1"), PriorityClassName: "high"}},
		"no more":                    {words.Plus("shop", nil, nil), nil},
		"more of nothing":            {words.Plus("shop", nil, cpu("1")), &words.Needed{Namespace: "shop", ResourceRequest: cpu("1")}},
		"more of something":          {words.Plus("shop", &words.Needed{ResourceRequest: cpu("1")}, cpu("2")), &words.Needed{ResourceRequest: cpu("3")}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("needs (-want +got):\n%s", diff)
			}
		})
	}
	spec := object(t, `{containers: [{name: main}, {name: proxy}, 7]}`).Object
	if diff := cmp.Diff([]any{map[string]any{"name": "proxy"}}, words.Sidecars(spec, "main")); diff != "" {
		t.Errorf("side containers (-want +got):\n%s", diff)
	}
}

// TestHealth checks what each condition makes of the same object, and of one
// without a status.
func TestHealth(t *testing.T) {
	const seen = `{metadata: {generation: 2}, spec: {paused: true, size: 3}, status: {observedGeneration: 2, phase: Running, ready: 3, failed: 0, conditions: [{type: Ready, status: "True"}, {type: Failed, status: "False"}]}}`
	failing := func(kinds.Object) (bool, error) { return false, errors.New("it cannot be read") }
	type answer struct{ seen, bare bool }
	for name, tc := range map[string]struct {
		judge words.Health
		want  answer
		fails bool
	}{
		"the spec is observed":                   {judge: words.SpecObserved, want: answer{seen: true}},
		"or nobody says which is observed":       {judge: words.Current, want: answer{true, true}},
		"a condition is true":                    {judge: words.IsTrue("Ready"), want: answer{seen: true}},
		"both are":                               {judge: words.IsTrue("Ready", "Failed")},
		"a condition is not true":                {judge: words.NotTrue("Failed"), want: answer{true, true}},
		"neither is":                             {judge: words.NotTrue("Failed", "Ready"), want: answer{bare: true}},
		"a phase is one of these":                {judge: words.Word("status.phase", "Done", "Running"), want: answer{seen: true}},
		"the spec asks for it":                   {judge: words.Asks("spec.paused"), want: answer{seen: true}},
		"as many as are wanted":                  {judge: words.Enough("status.ready", "spec.size", 1), want: answer{seen: true}},
		"as many as there are without one":       {judge: words.Enough("status.ready", "spec.least", 0), want: answer{true, true}},
		"a field is there":                       {judge: words.There("status.phase"), want: answer{seen: true}},
		"none of them":                           {judge: words.None("status.failed"), want: answer{true, true}},
		"all agree":                              {judge: words.All(words.Current, words.IsTrue("Ready")), want: answer{seen: true}},
		"one cannot tell":                        {judge: words.All(words.Current, failing), fails: true},
		"one of them agrees":                     {judge: words.OneOf(words.IsTrue("Failed"), words.IsTrue("Ready")), want: answer{seen: true}},
		"none agrees":                            {judge: words.OneOf(words.IsTrue("Failed"))},
		"one cannot tell, the next is not asked": {judge: words.OneOf(failing, words.Current), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := tc.judge(object(t, seen))
			b, _ := tc.judge(object(t, `{metadata: {generation: 2}}`))
			if got := (answer{a, b}); got != tc.want || (err != nil) != tc.fails {
				t.Errorf("%+v, %v, want %+v", got, err, tc.want)
			}
			if words.Meets(tc.judge, object(t, seen)) != (tc.want.seen && !tc.fails) {
				t.Error("Meets disagrees")
			}
		})
	}
}

// TestGrades checks that objects that fail may be moved, and those that wait may
// not.
func TestGrades(t *testing.T) {
	r := words.Graded(kinds.Rules{}, words.ByWord("status.state", []string{"FAILED"}, []string{"RUNNING", "DONE"}))
	type answer struct{ healthy, waits bool }
	for state, want := range map[string]answer{
		"FAILED": {}, `""`: {}, "RUNNING": {healthy: true}, "DONE": {healthy: true}, "DREAMING": {healthy: true, waits: true},
	} {
		obj := object(t, `{status: {state: `+state+`}}`)
		healthy, err := r.Health(obj)
		if got := (answer{healthy, r.Waits(obj)}); got != want || err != nil {
			t.Errorf("%s is %+v, %v, want %+v", state, got, err, want)
		}
	}
}

// TestDependencies checks that dependencies are found for each way to refer to
// them.
func TestDependencies(t *testing.T) {
	secret := func(name string) kinds.Dependency {
		return kinds.Dependency{APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: name}
	}
	of := func(apiVersion, kind, namespace, name string) kinds.Dependency {
		return kinds.Dependency{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
	}
	const volume = `[{name: v, secret: {secretName: tls}}]`
	failing := func(kinds.Object) ([]kinds.Dependency, error) { return nil, errors.New("it cannot be read") }
	for name, tc := range map[string]struct {
		need   words.Need
		object string
		want   []kinds.Dependency
		fails  bool
	}{
		"Secrets by name, each once":      {need: words.Needs(words.Secrets("spec.secret", "spec.more.*"), words.Secrets("spec.secret")), object: `{spec: {secret: a, more: [b, a, 7]}}`, want: []kinds.Dependency{secret("a"), secret("b")}},
		"a ConfigMap":                     {need: words.ConfigMaps("spec.config"), object: `{spec: {config: c}}`, want: []kinds.Dependency{of("v1", "ConfigMap", "shop", "c")}},
		"the account that is everywhere":  {need: words.ServiceAccounts("spec.a", "spec.b"), object: `{spec: {a: default, b: web}}`, want: []kinds.Dependency{of("v1", "ServiceAccount", "shop", "web")}},
		"what pods refer to":              {need: words.Pods("spec.pods.*.spec"), object: `{spec: {pods: [{spec: {volumes: ` + volume + `}}, {spec: {}}]}}`, want: []kinds.Dependency{secret("tls")}},
		"parts of pods":                   {need: words.PodsOf(words.PodOf{Containers: []string{"spec.jobs.*"}, Volumes: []string{"spec.volumes.*"}}), object: `{spec: {jobs: [{name: a, envFrom: [{secretRef: {name: env}}]}], volumes: ` + volume + `}}`, want: []kinds.Dependency{secret("env"), secret("tls")}},
		"a reference says which kind":     {need: words.Refs("", "Store", "spec.ref"), object: `{spec: {ref: {kind: Bucket, namespace: data, name: b}}}`, want: []kinds.Dependency{of("x.io/v1", "Bucket", "data", "b")}},
		"or is of a kind that is known":   {need: words.Refs("y.io/v2", "Store", "spec.ref"), object: `{spec: {ref: {name: b}}}`, want: []kinds.Dependency{of("y.io/v2", "Store", "shop", "b")}},
		"one of no namespace":             {need: words.Refs("y.io/v2", "Store", "spec.ref"), object: `{spec: {ref: {kind: ClusterStore, apiVersion: y.io/v1, name: b}}}`, want: []kinds.Dependency{of("y.io/v1", "ClusterStore", "", "b")}},
		"one without a name":              {need: words.Refs("y.io/v2", "Store", "spec.ref"), object: `{spec: {ref: {kind: Bucket}}}`},
		"in the namespace of another":     {need: words.Within(words.TextAt("spec.target"), words.Secrets("spec.secret")), object: `{spec: {target: data, secret: a}}`, want: []kinds.Dependency{of("v1", "Secret", "data", "a")}},
		"always in the same":              {need: words.Within(words.Always("certs"), words.Secrets("spec.secret")), object: `{spec: {secret: a}}`, want: []kinds.Dependency{of("v1", "Secret", "certs", "a")}},
		"in none":                         {need: words.Within(words.TextAt("spec.target"), words.Secrets("spec.secret")), object: `{spec: {secret: a}}`},
		"what cannot be read is an error": {need: words.Needs(words.Secrets("spec.secret"), failing), object: `{spec: {secret: a}}`, fails: true},
		"also of pods":                    {need: words.Pods("spec.pod"), object: `{spec: {pod: {containers: 7}}}`, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.need(object(t, tc.object))
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.fails {
				t.Errorf("dependencies (-want +got):\n%s%v", diff, err)
			}
		})
	}
}

// TestPaths checks that a star matches every element of a list and, in a name, any
// characters.
func TestPaths(t *testing.T) {
	node := object(t, `{spec: {a: [{x: 1}, {x: 2}, 7], podOne: {n1: 3}, podTwo: {n1: 4}, other: {n1: 5}}}`).Object
	for path, want := range map[string][]any{
		"spec.a.*.x":         {int64(1), int64(2)},
		"spec.pod*.n1":       {int64(3), int64(4)},
		"spec.a.x":           nil,
		"spec.nothing.x":     nil,
		"spec.other.n1.deep": nil,
	} {
		if diff := cmp.Diff(want, words.Find(node, path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	if diff := cmp.Diff([]map[string]any{{"x": int64(1)}, {"x": int64(2)}}, words.Objects(node, "spec.a.*")); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"a": 1}, words.Pick(map[string]any{"a": 1, "b": nil, "c": 3}, "a", "b", "d")); diff != "" {
		t.Errorf("picked (-want +got):\n%s", diff)
	}
	served := kinds.Table{}
	words.Served(served, "x.io", []string{"v1", "v2"}, "Train", kinds.Rules{})
	_, one := served[words.Kind("x.io/v1", "Train")]
	_, two := served[schema.GroupVersionKind{Group: "x.io", Version: "v2", Kind: "Train"}]
	if !one || !two || len(served) != 2 {
		t.Errorf("served: %v", served)
	}
}

// TestRetain checks that what an operator in the member sets stays, and what
// Flotilla set does not.
func TestRetain(t *testing.T) {
	const fields = `[{manager: operator, operation: Update, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:suspend": {}}}}]`
	leave := words.Leave("spec.suspend")
	for name, tc := range map[string]struct {
		retain            words.Retain
		desired, observed string
		want              string
	}{
		"an operator suspended it":            {leave, `{spec: {suspend: false, x: 1}}`, `{metadata: {managedFields: ` + fields + `}, spec: {suspend: true}}`, `{spec: {x: 1}}`},
		"somebody without managed fields":     {leave, `{spec: {suspend: false}}`, `{spec: {suspend: true}}`, `{spec: {}}`},
		"we did":                              {leave, `{spec: {suspend: false}}`, `{metadata: {managedFields: [{manager: other}]}, spec: {suspend: true}}`, `{spec: {suspend: false}}`},
		"nobody did":                          {leave, `{spec: {suspend: false}}`, `{spec: {suspend: false}}`, `{spec: {suspend: false}}`},
		"it is to be suspended":               {leave, `{spec: {suspend: true}}`, `{spec: {suspend: true}}`, `{spec: {suspend: true}}`},
		"nothing is asked for":                {leave, `{spec: {}}`, `{spec: {suspend: true}}`, `{spec: {}}`},
		"what a cluster fills in goes":        {words.Drop([]string{"spec", "a"}, []string{"spec", "b"}), `{spec: {a: 1, c: 2}}`, `{}`, `{spec: {c: 2}}`},
		"of what is not there nothing is cut": {words.Drop([]string{"spec", "a"}), `{spec: {c: 2}}`, `{}`, `{spec: {c: 2}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.retain(object(t, tc.desired), object(t, tc.observed))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("retained (-want +got):\n%s", diff)
			}
		})
	}
	has := words.Has("spec.a", "spec.b.c")
	if has(object(t, `{spec: {b: {}}}`)) || !has(object(t, `{spec: {b: {c: 0}}}`)) {
		t.Error("Has does not report whether one of the fields is there")
	}
}
