package rulestest

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// Example is one folder of testdata: a template, and objects that members made
// of it. Each member is written as what differs from the template.
type Example struct {
	Dir      string
	Template kinds.Object
	Members  []kinds.Object
}

// GVK is the kind of the template.
func (e Example) GVK() schema.GroupVersionKind { return e.Template.GroupVersionKind() }

// Cluster is the name of the cluster of a member, by its place.
func Cluster(i int) string { return fmt.Sprintf("m%d", i+1) }

// Examples reads all examples in a folder.
func Examples(t testing.TB, dir string) []Example {
	t.Helper()
	var all []Example
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "template.yaml" {
			return err
		}
		all = append(all, read(t, filepath.Dir(path)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(t testing.TB, dir string) Example {
	t.Helper()
	e := Example{Dir: dir, Template: documents(t, filepath.Join(dir, "template.yaml"))[0]}
	for _, patch := range documents(t, filepath.Join(dir, "members.yaml")) {
		member := e.Template.DeepCopy()
		delete(member.Object, "status")
		merge(member.Object, patch.Object)
		annotations := member.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		if annotations[workv1alpha2.ResourceTemplateGenerationAnnotationKey] == "" {
			annotations[workv1alpha2.ResourceTemplateGenerationAnnotationKey] = fmt.Sprint(e.Template.GetGeneration())
		}
		member.SetAnnotations(annotations)
		e.Members = append(e.Members, member)
	}
	return e
}

func documents(t testing.TB, path string) []kinds.Object {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []kinds.Object
	for _, doc := range strings.Split("\n"+string(data), "\n---\n") {
		text, err := yaml.YAMLToJSONStrict([]byte(doc))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		obj := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(text, &obj.Object); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, obj)
	}
	return out
}

// merge puts a JSON merge patch on top of an object.
func merge(onto, patch map[string]any) {
	for k, v := range patch {
		below, ok := v.(map[string]any)
		if !ok {
			onto[k] = v
			continue
		}
		inner, ok := onto[k].(map[string]any)
		if !ok {
			inner = map[string]any{}
			onto[k] = inner
		}
		merge(inner, below)
	}
}

// Outcome is what the interpreter answers about an example; what is not known of
// the kind is left out.
type Outcome struct {
	Replicas     *int32                            `json:"replicas,omitempty"`
	Requirements *workv1alpha2.ReplicaRequirements `json:"requirements,omitempty"`
	Components   []workv1alpha2.Component          `json:"components,omitempty"`
	// Revised are the changes that asking for one replica makes.
	Revised []string `json:"revisedToOne,omitempty"`
	// Retained are the changes to what is applied, by member.
	Retained map[string][]string                    `json:"retained,omitempty"`
	Health   map[string]workv1alpha2.ResourceHealth `json:"health,omitempty"`
	// Waiting are members whose object may stay and is not shown as healthy.
	Waiting []string `json:"waiting,omitempty"`
	// Reflected by member.
	Reflected    map[string]any `json:"reflected,omitempty"`
	Aggregated   map[string]any `json:"aggregated,omitempty"`
	Dependencies []string       `json:"dependencies,omitempty"`
}

// Interpret asks a table all that it knows about an example.
func Interpret(t testing.TB, table kinds.Table, e Example) Outcome {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	know := interpreter.New(table)
	rules := table[e.GVK()]
	var out Outcome
	n, req, known, err := know.Replicas(e.Template)
	if must(err); known {
		out.Replicas, out.Requirements = &n, req
	}
	out.Components, _, err = know.Components(e.Template)
	must(err)
	revised, _, err := know.Revise(e.Template, 1)
	must(err)
	out.Revised = Changes("", e.Template.Object, revised.Object)
	if rules.Retain != nil {
		out.Retained = map[string][]string{}
		for i, m := range e.Members {
			if kept, err := know.Retain(e.Template, m); know.Retains(e.Template) {
				must(err)
				out.Retained[Cluster(i)] = Changes("", e.Template.Object, kept.Object)
			}
		}
	}
	if rules.Health != nil {
		out.Health = map[string]workv1alpha2.ResourceHealth{}
		for i, m := range e.Members {
			out.Health[Cluster(i)], err = know.Health(m)
			must(err)
			shown, err := know.Shown(m)
			must(err)
			if shown != out.Health[Cluster(i)] {
				out.Waiting = append(out.Waiting, Cluster(i))
			}
		}
	}
	if rules.Reflect != nil {
		out.Reflected = map[string]any{}
		for i, item := range Items(t, know, e) {
			out.Reflected[Cluster(i)] = item.Status
		}
	}
	out.Aggregated, _, err = know.AggregateStatus(e.Template, Items(t, know, e))
	if must(err); rules.Aggregate == nil {
		out.Aggregated = nil
	}
	deps, _, err := know.Dependencies(e.Template)
	must(err)
	for _, d := range deps {
		out.Dependencies = append(out.Dependencies,
			strings.TrimSpace(d.APIVersion+" "+d.Kind+" "+strings.TrimPrefix(d.Namespace+"/"+d.Name, "/")))
	}
	return out
}

// Items are what the clusters of an example report.
func Items(t testing.TB, know *interpreter.Interpreter, e Example) []workv1alpha2.AggregatedStatusItem {
	t.Helper()
	var out []workv1alpha2.AggregatedStatusItem
	for i, m := range e.Members {
		status, err := know.ReflectStatus(m)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, workv1alpha2.AggregatedStatusItem{ClusterName: Cluster(i), Status: status})
	}
	return out
}

// Changes lists what differs, "spec.replicas: 4 -> 1".
func Changes(path string, was, is any) []string {
	a, isObject := was.(map[string]any)
	b, stillObject := is.(map[string]any)
	switch {
	case isObject && stillObject:
		all := maps.Clone(a)
		maps.Copy(all, b)
		var out []string
		for _, key := range slices.Sorted(maps.Keys(all)) {
			out = append(out, Changes(strings.TrimPrefix(path+"."+key, "."), a[key], b[key])...)
		}
		return out
	case reflect.DeepEqual(was, is):
		return nil
	}
	x, isList := was.([]any)
	y, stillList := is.([]any)
	if isList && stillList && len(x) == len(y) {
		var out []string
		for i := range x {
			out = append(out, Changes(fmt.Sprintf("%s[%d]", path, i), x[i], y[i])...)
		}
		return out
	}
	return []string{fmt.Sprintf("%s: %v -> %v", path, was, is)}
}

// CheckGolden compares what a table knows about every example in a folder with its golden file, or writes that.
func CheckGolden(t *testing.T, table kinds.Table, dir string, update bool) {
	t.Helper()
	for _, e := range Examples(t, dir) {
		t.Run(strings.TrimPrefix(e.Dir, dir+"/"), func(t *testing.T) {
			before := e.Template.DeepCopy()
			got, err := yaml.Marshal(Interpret(t, table, e))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before.Object, e.Template.Object); diff != "" {
				t.Errorf("the template that came in was changed:\n%s", diff)
			}
			file := filepath.Join(e.Dir, "golden.yaml")
			if update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

// CheckConverges: for every example in a folder, the order in which clusters come makes no difference to the status,
// and aggregating twice is aggregating once.
func CheckConverges(t *testing.T, table kinds.Table, dir string) {
	t.Helper()
	know := interpreter.New(table)
	for _, e := range Examples(t, dir) {
		t.Run(strings.TrimPrefix(e.Dir, dir+"/"), func(t *testing.T) {
			all := Items(t, know, e)
			status, changed, err := know.AggregateStatus(e.Template, all)
			if err != nil || !changed {
				return
			}
			backwards := slices.Clone(all)
			slices.Reverse(backwards)
			other, _, _ := know.AggregateStatus(e.Template, backwards)
			if diff := cmp.Diff(status, other); diff != "" {
				t.Errorf("another order of clusters makes a difference:\n%s", diff)
			}
			again := e.Template.DeepCopy()
			again.Object["status"] = runtime.DeepCopyJSON(status)
			converged, changed, _ := know.AggregateStatus(again, all)
			if changed {
				t.Errorf("aggregating twice is not aggregating once:\n%s", cmp.Diff(status, converged))
			}
		})
	}
}
