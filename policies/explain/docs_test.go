package explain_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/explain"
)

// example reads testdata/example.yaml.
func example(t *testing.T) explain.Input {
	t.Helper()
	data, err := os.ReadFile("testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	in := explain.Input{Now: noon}
	for doc := range strings.SplitSeq(string(data), "---\n") {
		obj := template(t, doc)
		switch obj.GetKind() {
		case "Cluster":
			in.Clusters = append(in.Clusters, parse(t, doc, &clusterv1alpha1.Cluster{}))
		case "PropagationPolicy":
			in.Policies = append(in.Policies, parse(t, doc, &policyv1alpha1.PropagationPolicy{}))
		case "ClusterPropagationPolicy":
			in.Policies = append(in.Policies, parse(t, doc, &policyv1alpha1.ClusterPropagationPolicy{}))
		case "OverridePolicy":
			in.Overrides = append(in.Overrides, parse(t, doc, &policyv1alpha1.OverridePolicy{}))
		case "ResourceBinding":
			in.Binding = parse(t, doc, &workv1alpha2.ResourceBinding{})
		default:
			in.Template = obj
		}
	}
	return in
}

// TestDocs keeps the example in docs/cli.md true.
func TestDocs(t *testing.T) {
	const path = "../../docs/cli.md"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "```text\n$ flotilla explain deployment/web -n shop\n", "```\n"
	before, rest, found := strings.Cut(string(data), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no block that begins with %q", path, begin)
	}
	want := fmt.Sprint(before, begin, explain.Explain(example(t)).Text(explain.TextOptions{}), end, after)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("%s (-want +got); run with -update and review the diff:\n%s", path, diff)
	}
}
