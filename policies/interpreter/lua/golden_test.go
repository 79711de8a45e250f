package lua_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden runs customizations as users write them. Each file has a
// customization, an object of its kind, the copy in a member, and what members
// report.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	m := lua.New(lua.Options{Now: clock})
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := strings.Split(string(data), "\n---\n")
			custom := &configv1alpha1.ResourceInterpreterCustomization{}
			if err := yaml.UnmarshalStrict([]byte(parts[0]), custom); err != nil {
				t.Fatal(err)
			}
			layer, problems := m.Layer([]*configv1alpha1.ResourceInterpreterCustomization{custom})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			rules := layer.Rules(schema.FromAPIVersionAndKind(custom.Spec.Target.APIVersion, custom.Spec.Target.Kind))
			desired, observed := object(t, parts[1]), object(t, parts[2])
			desiredCopy, observedCopy := desired.DeepCopy(), observed.DeepCopy()
			got := answers(t, rules, desired, observed, reports(t, parts[3:]))
			if !cmp.Equal(desired, desiredCopy) || !cmp.Equal(observed, observedCopy) {
				t.Error("a rule changed the object that it was given")
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

// reports reads items from the last part of a file.
func reports(t *testing.T, parts []string) []workv1alpha2.AggregatedStatusItem {
	t.Helper()
	if len(parts) == 0 {
		return nil
	}
	var items []workv1alpha2.AggregatedStatusItem
	if err := yaml.UnmarshalStrict([]byte(parts[0]), &items); err != nil {
		t.Fatal(err)
	}
	return items
}

// answers returns the results of all rules, one after the other.
func answers(t *testing.T, r kinds.Rules, desired, observed *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) []byte {
	t.Helper()
	var out bytes.Buffer
	report := func(operation string, answer any, err error) {
		out.WriteString("# " + operation + "\n")
		if err != nil {
			out.WriteString("error: " + err.Error() + "\n")
			return
		}
		data, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.JSONToYAML(data)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
	}
	if r.Replicas != nil {
		n, req, err := r.Replicas(desired)
		report("replicas", map[string]any{"replicas": n, "requirements": req}, err)
	}
	if r.Components != nil {
		parts, err := r.Components(desired)
		report("components", parts, err)
	}
	if r.Revise != nil {
		revised, err := r.Revise(desired, 7)
		report("revised to 7", revised, err)
	}
	if r.Retain != nil {
		retained, err := r.Retain(desired, observed)
		report("retained", retained, err)
	}
	if r.Reflect != nil {
		status, err := r.Reflect(observed)
		report("reflected", status, err)
	}
	if r.Health != nil {
		healthy, err := r.Health(observed)
		report("healthy", healthy, err)
	}
	if r.Aggregate != nil {
		status, err := r.Aggregate(desired, items)
		report("aggregated", status, err)
	}
	if r.Dependencies != nil {
		deps, err := r.Dependencies(desired)
		report("dependencies", deps, err)
	}
	return out.Bytes()
}
