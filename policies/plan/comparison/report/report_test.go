package report_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/policies/explain/change"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/plan/comparison/report"
)

var update = flag.Bool("update", false, "write the golden files anew")

func object(kind, name string) comparison.Object {
	versions := map[string]string{"Deployment": "apps/v1"}
	if versions[kind] == "" {
		versions[kind] = "v1"
	}
	return comparison.Object{APIVersion: versions[kind], Kind: kind, Namespace: "shop", Name: name, Kustomization: "flux-system/shop"}
}

// fleet returns n clusters.
func fleet(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("eu-%03d", i))
	}
	return out
}

func manifest(image string) map[string]any {
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "shop"},
		"spec": map[string]any{"replicas": int64(3), "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": image}}}}},
	}
}

// full is a comparison with something of everything.
func full() comparison.Comparison {
	claim := object("PersistentVolumeClaim", "data")
	settings := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "namespace": "shop"}, "data": map[string]any{"page": "<b>\n"}}
	c := comparison.Comparison{
		APIVersion: comparison.APIVersion, Kind: comparison.Kind,
		Summary: comparison.Summary{Deleted: 2, Created: 1, Updated: 38, Moved: 1, Left: 1, Clusters: 39, Objects: 6, Restarts: 111},
		Risks: []comparison.Risk{
			{Reason: comparison.RiskVolume, Object: &claim, Clusters: []string{"eu-001", "us-1"}, Message: "PersistentVolumeClaim shop/data is deleted in 2 clusters, with its data"},
			{Reason: comparison.RiskUnknownCluster, Policy: "PropagationPolicy shop/web", Message: "PropagationPolicy shop/web: clusterNames names us-2, which does not exist (did you mean us-1?)"},
		},
		Placements: []comparison.Placement{
			{Object: object("Deployment", "web"), PolicyBefore: "PropagationPolicy shop/web", Policy: "PropagationPolicy shop/web", Why: "placement changed", Shifts: []comparison.Shift{
				{Cluster: "eu-001", Before: ptr.To[int32](2), After: ptr.To[int32](3)}, {Cluster: "eu-002", Before: ptr.To[int32](2), After: ptr.To[int32](3)},
				{Cluster: "us-1", Before: ptr.To[int32](2)}, {Cluster: "us-3", After: ptr.To[int32](1)},
			}},
			{Object: claim, Why: "its template is deleted", Shifts: []comparison.Shift{{Cluster: "eu-001", Before: ptr.To[int32](0)}, {Cluster: "us-1", Before: ptr.To[int32](0)}}},
		},
		Changes: []comparison.Change{
			{Object: claim, Action: comparison.Deleted, Clusters: []string{"eu-001", "us-1"}},
			{Object: object("ConfigMap", "old"), Action: comparison.Left, Clusters: []string{"us-1"}},
			{Object: object("ConfigMap", "settings"), Action: comparison.Created, Clusters: []string{"us-3"}, After: settings},
			{Object: object("Deployment", "web"), Action: comparison.Updated, Clusters: fleet(37), Before: manifest("nginx:1"), After: manifest("nginx:2"), Fields: change.All(manifest("nginx:1"), manifest("nginx:2"))},
			{Object: object("Deployment", "web"), Action: comparison.Updated, Clusters: []string{"us-1"}, Unknown: true, After: manifest("nginx:2")},
			{Object: object("ConfigMap", "lent"), Action: comparison.Moved, Clusters: []string{"us-1"}, Fields: []change.Change{{Path: "/metadata/labels/kustomize.toolkit.fluxcd.io~1name", Old: "apps", New: "shop"}}},
			{Object: object("ConfigMap", "paused"), Action: comparison.Suspended, Clusters: []string{"us-1"}},
			{Object: object("ConfigMap", "going"), Action: comparison.Resumed, Clusters: []string{"us-1"}},
		},
		Restarts: []comparison.Restart{
			{Object: object("Deployment", "web"), Clusters: fleet(37), Effect: comparison.Restarts, Pods: ptr.To[int64](111), Why: "its pod template changes: spec.containers.0.image"},
			{Object: object("Deployment", "api"), Clusters: []string{"us-1"}, Effect: comparison.Stays, Pods: ptr.To[int64](1), Why: "its pod template stays the same"},
		},
		Held: []comparison.Held{{Object: object("ConfigMap", "late"), Clusters: []string{"us-1"}, Why: "waiting for dependent overrides: tag"}},
	}
	return c
}

// golden compares a text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// hostile has what others would write where they can.
func hostile() comparison.Comparison {
	const text = "```\n@everyone ![x](https://evil/x.png) <!-- flotilla-review --> | `</details>` \x1b[31m\u202e /close"
	of := comparison.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: text}
	return comparison.Comparison{
		Summary: comparison.Summary{Updated: 1, Clusters: 1, Objects: 1},
		Risks:   []comparison.Risk{{Reason: comparison.RiskNotMade, Object: &of, Clusters: []string{text}, Message: text}},
		Placements: []comparison.Placement{
			{Object: of, Why: text, Shifts: []comparison.Shift{{Cluster: text, After: ptr.To[int32](1)}}},
		},
		Changes: []comparison.Change{
			{Object: of, Action: comparison.Deleted, Clusters: []string{text}},
			{Object: of, Action: comparison.Updated, Clusters: []string{text}, Before: map[string]any{"data": "x"}, After: map[string]any{"data": text, text: "y"}},
		},
		Restarts: []comparison.Restart{{Object: of, Clusters: []string{text}, Effect: comparison.Uncertain, Why: text}},
		Held:     []comparison.Held{{Object: of, Clusters: []string{text}, Why: text}},
	}
}

func TestGolden(t *testing.T) {
	for name, c := range map[string]comparison.Comparison{"full": full(), "hostile": hostile(), "empty": {APIVersion: comparison.APIVersion, Kind: comparison.Kind}} {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".txt", report.Text(c, report.TextOptions{}))
			golden(t, name+".md", report.Markdown(c, report.MarkdownOptions{Whole: "flotilla plan"}))
			data, err := report.JSON(c)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".json", string(data))
			asYAML, err := report.YAML(c)
			if err != nil {
				t.Fatal(err)
			}
			back, err := yaml.YAMLToJSON(asYAML)
			if err != nil {
				t.Fatal(err)
			}
			again, err := yaml.YAMLToJSON(data)
			if diff := cmp.Diff(string(again), string(back)); diff != "" || err != nil {
				t.Errorf("YAML says something else than JSON: %v\n%s", err, diff)
			}
		})
	}
	golden(t, "all.txt", report.Text(full(), report.TextOptions{All: true, Width: 72}))
}

// TestSummary: one line for each.
func TestSummary(t *testing.T) {
	for name, tc := range map[string]struct {
		c    comparison.Comparison
		want string
	}{
		"nothing":      {comparison.Comparison{}, "Nothing changes in any cluster."},
		"one of one":   {comparison.Comparison{Changes: make([]comparison.Change, 1), Summary: comparison.Summary{Deleted: 1, Clusters: 1, Objects: 1, Restarts: 1}}, "1 object changes in 1 cluster: 1 deleted; 1 pod restarts"},
		"a risk alone": {comparison.Comparison{Risks: make([]comparison.Risk, 1)}, "No object changes; 1 risk"},
		"a namespace":  {comparison.Comparison{Risks: []comparison.Risk{{Reason: comparison.RiskNamespace}}}, "More changes than is listed; 1 risk"},
		"everything":   {full(), "6 objects change in 39 clusters: 2 deleted, 1 left behind, 1 created, 38 updated, 1 with another owner; 111 pods restart; 2 risks"},
	} {
		if got := report.Summary(tc.c); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestMarkdownIsShort: of too much, the first and the last parts stay, and what is left out is counted.
func TestMarkdownIsShort(t *testing.T) {
	c := full()
	for i := range 2000 {
		c.Changes = append(c.Changes, comparison.Change{
			Object: object("ConfigMap", fmt.Sprintf("map-%04d", i)), Action: comparison.Updated, Clusters: fleet(300),
			Before: map[string]any{"data": strings.Repeat("x\n", 10)}, After: map[string]any{"data": strings.Repeat("y\n", 10)},
		})
	}
	last := comparison.Change{Object: object("ConfigMap", "zuletzt"), Action: comparison.Updated, Clusters: fleet(1), Before: map[string]any{"a": "b"}, After: map[string]any{"a": "c"}}
	c.Changes = append(c.Changes, last)
	for _, most := range []int{0, 20_000, 3_000} {
		text := report.Markdown(c, report.MarkdownOptions{Most: most, Whole: "flotilla plan -f ."})
		limit := most
		if limit == 0 {
			limit = report.MaxBytes
		}
		if len(text) > limit || len(text) < limit/3 {
			t.Errorf("%d bytes of %d", len(text), limit)
		}
		for _, want := range []string{report.Summary(c), "left out here: `flotilla plan -f .` shows all"} {
			if !strings.Contains(text, want) {
				t.Errorf("at most %d: %q is missing", limit, want)
			}
		}
		if !strings.Contains(text, "zuletzt") && most != 3_000 {
			t.Errorf("at most %d: the last part is missing", limit)
		}
	}
}

// TestLongDifference: one that is very long keeps its ends.
func TestLongDifference(t *testing.T) {
	var before, after []any
	for i := range 30_000 {
		before, after = append(before, int64(i)), append(after, int64(i+1))
	}
	c := comparison.Comparison{Changes: []comparison.Change{{
		Object: object("ConfigMap", "big"), Action: comparison.Updated, Clusters: []string{"a"}, Before: map[string]any{"list": before}, After: map[string]any{"list": after},
		Fields: []change.Change{{Path: "/list", Old: "many", New: "more"}},
	}}}
	if text := report.Text(c, report.TextOptions{}); !strings.Contains(text, `! /list: "many" → "more"`) {
		t.Errorf("the fields are not listed:\n%.400s", text)
	}
	c.Changes[0].Before["list"], c.Changes[0].After["list"] = before[:3000], after[:3000:3000]
	c.Changes[0].Action = comparison.Created
	if text := report.Markdown(c, report.MarkdownOptions{}); !strings.Contains(text, "lines left out …") || len(text) > report.MaxBytes {
		t.Errorf("%d bytes:\n%.400s", len(text), text)
	}
}

// TestControlCharacters: what YAML cannot hold makes no difference disappear, and is valid in each format.
func TestControlCharacters(t *testing.T) {
	c := comparison.Comparison{Changes: []comparison.Change{{
		Object: object("ConfigMap", "odd"), Action: comparison.Updated, Clusters: []string{"a"}, Fields: []change.Change{{Path: "/a", Old: "\x7f", New: "\x7f\u0085b"}},
		Before: map[string]any{"a": "\x7f"}, After: map[string]any{"a": "\x7f\u0085b"},
	}}}
	const want = `    -  "a": "\u007f"` + "\n" + `    +  "a": "\u007f\u0085b"` + "\n"
	if text := report.Text(c, report.TextOptions{}); !strings.Contains(text, want) {
		t.Errorf("%q is not in\n%s", want, text)
	}
	data, err := report.YAML(c)
	if err != nil {
		t.Fatal(err)
	}
	var back comparison.Comparison
	if err := yaml.Unmarshal(data, &back); err != nil || back.Changes[0].Fields[0].New != "\x7f\u0085b" {
		t.Errorf("YAML does not come back: %v\n%s", err, data)
	}
}

// FuzzMarkdown: whatever others write, it stays within code, and looks like no comment of ours.
func FuzzMarkdown(f *testing.F) {
	for _, seed := range []string{"", "`", "```", "~~~", "@all", "<!-- x -->", "a|b", "\n```\n@x", strings.Repeat("`", 20), "\r\n", "![](x)", "<!-<!--", "`\u2028`", "\\`", "\x00", "\x7f", "\xff`"} {
		f.Add(seed, seed)
		f.Add(seed, "0")
	}
	f.Fuzz(func(t *testing.T, word, value string) {
		if len(word)+len(value) > 10_000 {
			t.Skip()
		}
		of := comparison.Object{APIVersion: "v1", Kind: "ConfigMap", Name: word}
		c := comparison.Comparison{
			Risks:      []comparison.Risk{{Reason: comparison.RiskNotMade, Message: value, Clusters: []string{word}}},
			Placements: []comparison.Placement{{Object: of, Why: value, Shifts: []comparison.Shift{{Cluster: word, After: ptr.To[int32](1)}}}},
			Changes: []comparison.Change{
				{Object: of, Action: comparison.Deleted, Clusters: []string{word}},
				{Object: of, Action: comparison.Updated, Clusters: []string{word, value}, Before: map[string]any{"a": word}, After: map[string]any{"a": value, "x" + word: word}},
			},
			Held: []comparison.Held{{Object: of, Clusters: []string{word}, Why: value}},
		}
		text := report.Markdown(c, report.MarkdownOptions{Whole: "flotilla plan"})
		if len(text) > report.MaxBytes || strings.Contains(text, "<!--") {
			t.Fatalf("%d bytes, or a comment of ours:\n%s", len(text), text)
		}
		plain := report.Markdown(clean(c), report.MarkdownOptions{Whole: "flotilla plan"})
		if got, want := outside(t, text), outside(t, plain); !slices.Equal(got, want) {
			t.Fatalf("outside of code (-want +got):\n%s\n%s", cmp.Diff(want, got), text)
		}
	})
}

// clean is the same comparison with words that nobody minds.
func clean(c comparison.Comparison) comparison.Comparison {
	c.Risks = []comparison.Risk{{Reason: c.Risks[0].Reason, Message: "x", Clusters: []string{"x"}}}
	of := comparison.Object{APIVersion: "v1", Kind: "ConfigMap", Name: "x"}
	c.Placements = []comparison.Placement{{Object: of, Why: "x", Shifts: []comparison.Shift{{Cluster: "x", After: ptr.To[int32](1)}}}}
	c.Changes = []comparison.Change{
		{Object: of, Action: comparison.Deleted, Clusters: []string{"x"}},
		{Object: of, Action: comparison.Updated, Clusters: []string{"x", "x"}, Before: map[string]any{"a": "b"}, After: map[string]any{"a": "c"}},
	}
	c.Held = []comparison.Held{{Object: of, Clusters: []string{"x"}, Why: "x"}}
	return c
}

// outside returns what of a text is outside of code, by the rules of CommonMark: line by line, with each piece of code
// as a dot, and with nothing where a piece of code is empty and left out.
func outside(t *testing.T, text string) []string {
	t.Helper()
	var out []string
	fence := 0
	for line := range strings.SplitSeq(text, "\n") {
		ticks := len(line) - len(strings.TrimLeft(line, "`"))
		switch {
		case fence > 0 && ticks >= fence && strings.Trim(line, "` \t") == "":
			fence = 0
			out = append(out, "fence")
			continue
		case fence > 0:
			continue
		case ticks >= 3 && !strings.Contains(line[ticks:], "`"):
			fence = ticks
			out = append(out, "fence")
			continue
		}
		var rest strings.Builder
		for line != "" {
			before, after, found := strings.Cut(line, "`")
			rest.WriteString(before)
			if !found {
				break
			}
			if strings.HasPrefix(after, "`") {
				t.Fatalf("two marks of code in a row: %q", line)
			}
			_, line, found = strings.Cut(after, "`")
			if !found {
				t.Fatalf("code has no end: %q", after)
			}
		}
		out = append(out, strings.Join(strings.Fields(rest.String()), " "))
	}
	if fence > 0 {
		t.Fatal("a block of code has no end")
	}
	return out
}
