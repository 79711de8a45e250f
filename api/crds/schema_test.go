package crds

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/openapi"
	searchv1alpha1 "github.com/flotilla-io/flotilla/api/search/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestSchemas holds the definitions to the reference: what it has, ours have
// too, with the same meaning. What ours have besides is in a golden file, so
// that each addition is seen in review; what would make ours stricter than the
// reference is no addition but a fault.
func TestSchemas(t *testing.T) {
	dir := referenceDir(t)
	var additions []string
	add := func(subject string, found []string) {
		for _, a := range found {
			additions = append(additions, subject+" "+a)
		}
	}

	ours := map[string]any{}
	for name, crd := range definitions(t) {
		ours[name] = crd
	}
	for name, want := range referenceCRDs(t, dir) {
		got, ok := ours[name]
		if !ok {
			t.Errorf("%s: missing", name)
			continue
		}
		delete(ours, name)
		faults, found := compare(want, got)
		for _, f := range faults {
			t.Errorf("%s %s", name, f)
		}
		add(name, found)
	}
	for name := range ours {
		add(name, []string{"(kind)"})
	}

	mine := openAPIDefinitions(t)
	for name, want := range referenceOpenAPI(t, dir) {
		got, ok := mine[name]
		if !ok {
			t.Errorf("%s: missing", name)
			continue
		}
		delete(mine, name)
		faults, found := compare(want, got)
		for _, f := range faults {
			t.Errorf("%s %s", name, f)
		}
		add(name, found)
	}
	for name := range mine {
		if strings.HasPrefix(name, "io.karmada.work.") || strings.Contains(name, ".apis.policy.v1alpha1.") {
			continue // of kinds whose CRDs were compared
		}
		add(name, []string{"(definition)"})
	}

	slices.Sort(additions)
	golden(t, "testdata/additions.golden", strings.Join(additions, "\n")+"\n")
}

// golden compares text with a file, or rewrites the file under -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is out of date, run the test with -update (-file +now):\n%s", path, diff)
	}
}

// referenceDir finds the schemas beside the checkout, or skips the test.
func referenceDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(moduleRoot(t), "..", "shared", "reference", "schemas")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no reference schemas: ../shared/reference/schemas is not beside this checkout")
	} else if err != nil {
		t.Fatal(err)
	}
	return dir
}

// moduleRoot is the closest folder upwards that has a go.mod.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod in any folder above the test")
		}
		dir = parent
	}
}

// definitions are our CRDs by name, as the maps that they are on the wire.
func definitions(t *testing.T) map[string]any {
	t.Helper()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	for _, crd := range all {
		out[crd.Name] = normalCRD(t, crd)
	}
	return out
}

func referenceCRDs(t *testing.T, dir string) map[string]any {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no CRDs in %s: %v", dir, err)
	}
	out := map[string]any{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		crd := new(apiextensionsv1.CustomResourceDefinition)
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out[crd.Name] = normalCRD(t, crd)
	}
	return out
}

// normalCRD is the spec of a CRD with its versions by name, and without what
// has no bearing on the wire.
func normalCRD(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) any {
	t.Helper()
	out := toMap(t, crd.Spec)
	versions := map[string]any{}
	for _, v := range out["versions"].([]any) {
		version := v.(map[string]any)
		versions[version["name"].(string)] = version
		// Both forms say that there is none.
		if sub, ok := version["subresources"].(map[string]any); ok && len(sub) == 0 {
			delete(version, "subresources")
		}
	}
	out["versions"] = versions
	return out
}

func referenceOpenAPI(t *testing.T, dir string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "aggregated-cluster-search.openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// openAPIDefinitions are our definitions of the kinds served in process, with
// the mark of their kind that a server adds to them.
func openAPIDefinitions(t *testing.T) map[string]any {
	t.Helper()
	ref := func(name string) spec.Ref { return spec.MustCreateRef("#/definitions/" + name) }
	out := map[string]any{}
	for name, definition := range openapi.GetOpenAPIDefinitions(ref) {
		out[name] = toMap(t, definition.Schema)
	}
	for name, kind := range map[string]any{
		clusterv1alpha1.Cluster{}.OpenAPIModelName():             kindMark(clusterv1alpha1.GroupName, "Cluster"),
		clusterv1alpha1.ClusterList{}.OpenAPIModelName():         kindMark(clusterv1alpha1.GroupName, "ClusterList"),
		searchv1alpha1.ResourceRegistry{}.OpenAPIModelName():     kindMark(searchv1alpha1.GroupName, "ResourceRegistry"),
		searchv1alpha1.ResourceRegistryList{}.OpenAPIModelName(): kindMark(searchv1alpha1.GroupName, "ResourceRegistryList"),
	} {
		out[name].(map[string]any)["x-kubernetes-group-version-kind"] = kind
	}
	return out
}

func kindMark(group, kind string) any {
	return []any{map[string]any{"group": group, "version": "v1alpha1", "kind": kind}}
}

func toMap(t *testing.T, in any) map[string]any {
	t.Helper()
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// compare returns where got is not what want says, and what it has besides.
func compare(want, got any) (faults, additions []string) {
	c := &comparison{}
	c.values("", want, got)
	slices.Sort(c.faults)
	slices.Sort(c.additions)
	return c.faults, c.additions
}

type comparison struct{ faults, additions []string }

func (c *comparison) fault(path, format string, args ...any) {
	c.faults = append(c.faults, path+": "+fmt.Sprintf(format, args...))
}

// strict are the keys that narrow what a schema allows. Where the reference
// does not have them, ours may not have them either.
var strict = []string{
	"additionalProperties", "allOf", "anyOf", "default", "enum", "exclusiveMaximum", "exclusiveMinimum", "format",
	"items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum",
	"multipleOf", "not", "nullable", "oneOf", "pattern", "required", "type", "uniqueItems", "x-kubernetes-int-or-string",
	"x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-preserve-unknown-fields",
	"x-kubernetes-validations", "x-kubernetes-embedded-resource",
}

// sets are the keys whose lists have no order.
var sets = []string{"enum", "required", "categories", "shortNames"}

func (c *comparison) values(path string, want, got any) {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			c.fault(path, "want an object, got %v", got)
			return
		}
		c.maps(path, want, got)
	case []any:
		got, ok := got.([]any)
		if !ok {
			c.fault(path, "want a list, got %v", got)
			return
		}
		c.lists(path, want, got)
	default:
		if !reflect.DeepEqual(want, got) {
			c.fault(path, "want %v, got %v", want, got)
		}
	}
}

func (c *comparison) maps(path string, want, got map[string]any) {
	named := strings.HasSuffix(path, ".properties") // keys are fields, not keywords
	for key, w := range want {
		if g, ok := got[key]; ok {
			c.values(path+"."+key, w, g)
		} else {
			c.fault(path+"."+key, "missing")
		}
	}
	for key := range got {
		if _, ok := want[key]; ok || key == "description" && !named {
			continue
		}
		if slices.Contains(strict, key) && !named {
			c.fault(path+"."+key, "stricter than the reference: %v", got[key])
			continue
		}
		c.additions = append(c.additions, path+"."+key)
	}
}

func (c *comparison) lists(path string, want, got []any) {
	key := path[strings.LastIndex(path, ".")+1:]
	if !slices.Contains(sets, key) {
		if len(want) != len(got) {
			c.fault(path, "want %d items, got %d", len(want), len(got))
			return
		}
		for i := range want {
			c.values(fmt.Sprintf("%s[%d]", path, i), want[i], got[i])
		}
		return
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			c.fault(path, "%v is missing", w)
		}
	}
	for _, g := range got {
		if slices.Contains(want, g) {
			continue
		}
		if key == "required" {
			c.fault(path, "%v is required, but not by the reference", g)
			continue
		}
		c.additions = append(c.additions, fmt.Sprintf("%s %v", path, g))
	}
}
