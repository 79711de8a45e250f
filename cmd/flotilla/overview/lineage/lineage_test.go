package lineage_test

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/lineage"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
)

var update = flag.Bool("update", false, "rewrite golden files")

func golden(t *testing.T, name string, print func(io.Writer) error) {
	t.Helper()
	var got bytes.Buffer
	if err := print(&got); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func web(cluster string) lineage.Object {
	return lineage.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", Cluster: cluster}
}

func work(cluster string) *lineage.Object {
	return &lineage.Object{Kind: "Work", Namespace: "karmada-es-" + cluster, Name: "web-56d6c779bb"}
}

func TestTrace(t *testing.T) {
	const revision = "main@sha1:9f2c8c1d5b7a4e3f2a1b0c9d8e7f6a5b4c3d2e1f"
	pod := lineage.Object{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web-1", Cluster: "east"}
	template := web("")
	source := &lineage.Source{
		Object: lineage.Object{Kind: "GitRepository", Namespace: "default", Name: "fleet"},
		URL:    "https://git.example.com/fleet.git", Reference: "branch main", State: situation.Ready,
	}
	applier := &lineage.Applier{
		Object: lineage.Object{Kind: "Kustomization", Namespace: "default", Name: "web"}, Path: "./app", Revision: revision, State: situation.Ready,
	}
	cases := map[string]lineage.Trace{
		"pod": {
			Object: pod, Owners: []lineage.Object{{Kind: "ReplicaSet", Namespace: "shop", Name: "web-5f", Cluster: "east"}, web("east")},
			Template: &template, Source: source, Applier: applier,
			Commit:    &lineage.Commit{Revision: revision, Author: "Ann Other <ann@example.com>", Subject: "More replicas", Date: "2026-03-05T08:00:00Z"},
			File:      &lineage.File{Path: "app/web.yaml", Line: 12, LastChange: &lineage.Commit{Revision: "sha1:0b7a6c5d4e3f2a1b0c9d8e7f6a5b4c3d9f2c4d1e", Author: "Bob Else <bob@example.com>", Subject: "Open the shop", Date: "2026-02-01T09:30:00Z"}},
			Policy:    &lineage.Object{Kind: "PropagationPolicy", Namespace: "shop", Name: "web"},
			Overrides: []lineage.Override{{Object: lineage.Object{Kind: "OverridePolicy", Namespace: "shop", Name: "mirror"}, Clusters: []string{"east", "west"}}},
			Binding:   &lineage.Binding{Object: lineage.Object{Kind: "ResourceBinding", Namespace: "shop", Name: "web-deployment"}, Decided: "2026-03-05T08:00:01Z", Outcome: "Success"},
			Clusters: []lineage.Delivery{
				{Cluster: "east", Replicas: 2, Work: work("east"), State: situation.Ready, Applied: "yes", Health: "Healthy",
					Member: &lineage.Member{UID: "a8c7", Created: "2026-03-05T08:00:02Z", Generation: 3, Ready: "2/2"}},
				{Cluster: "far-away", Replicas: 1, Work: work("far-away"), State: situation.Failed, Applied: "no", Message: "forbidden:\nexceeded quota"},
				{Cluster: "new", Replicas: 1, State: situation.Progressing, Applied: "not yet", Message: "not sent yet"},
				{Cluster: "west", Replicas: 1, Work: work("west"), State: situation.Ready, Applied: "yes", Health: "Healthy", Member: &lineage.Member{Error: "it is not there"}},
			},
		},
		"included": {
			Object: template, Source: source, Applier: applier,
			Commit: &lineage.Commit{Revision: revision, Author: "Ann Other <ann@example.com>", Subject: "More replicas", Date: "2026-03-05T08:00:00Z"},
			File: &lineage.File{Path: "vendor/base/web.yaml", Line: 12, Included: &lineage.Included{
				Object: lineage.Object{Kind: "GitRepository", Namespace: "default", Name: "base"}, Path: "deploy/web.yaml",
				Revision: "v1.2.0@sha1:0b7a6c5d4e3f2a1b0c9d8e7f6a5b4c3d9f2c4d1e",
			}},
		},
		"submodule": {
			Object: template, Source: source, Applier: applier,
			Commit: &lineage.Commit{Revision: revision, Author: "Ann Other <ann@example.com>", Subject: "More replicas", Date: "2026-03-05T08:00:00Z"},
			File: &lineage.File{Path: "vendor/base/deploy/web.yaml", Line: 12, Submodule: &lineage.Submodule{
				Directory: "vendor/base", URL: "https://git.example.com/shop/base", Commit: "0b7a6c5d4e3f2a1b0c9d8e7f6a5b4c3d9f2c4d1e", Path: "deploy/web.yaml",
			}},
		},
		"misread": {
			Object:  template,
			Binding: &lineage.Binding{Object: lineage.Object{Kind: "ResourceBinding", Namespace: "shop", Name: "web-deployment"}, Decided: "2026-03-05T08:00:01Z", Outcome: "Success", Fault: "webhook w: no answer"},
			Clusters: []lineage.Delivery{
				{Cluster: "east", Work: work("east"), State: situation.Ready, Applied: "yes", Health: "Healthy", Message: "spec.replicas is 7"},
			},
		},
		"unknown": {
			Object: template, Applier: applier,
			Source: &lineage.Source{Object: source.Object, URL: source.URL, Reference: "tag v1", State: situation.Failed, Message: "refused"},
			Commit: &lineage.Commit{Revision: revision, Unknown: "author and subject are not recorded: git show 9f2c"},
			File:   &lineage.File{Unknown: "the control plane's artifact server cannot be reached from here (hub:8080)"},
			Notes:  []string{"No policy carries it to clusters: flotilla explain deployment/web -n shop says why."},
		},
		"bucket": {
			Object: template, Applier: applier, Managers: []string{"kubectl"},
			Source: &lineage.Source{Object: lineage.Object{Kind: "Bucket", Namespace: "default", Name: "fleet"}, URL: "https://s3.example.com/fleet", Reference: "all objects", State: situation.Ready},
			Commit: &lineage.Commit{Revision: "sha256:0b7a6c5d4e3f2a1b0c9d8e7f6a5b4c3d9f2c4d1e0b7a6c5d4e3f2a1b0c9d8e7f", Artifact: true},
			File:   &lineage.File{Path: "app/web.yaml", Line: 12},
		},
		"rewritten": {
			Object: template, Applier: applier,
			Source: &lineage.Source{Object: source.Object, URL: source.URL, Reference: source.Reference, State: source.State, History: "the history was rewritten, and does not contain main@sha1:0b7a6c5d"},
			Commit: &lineage.Commit{Revision: revision, Author: "Ann Other <ann@example.com>", Subject: "More replicas", Date: "2026-03-05T08:00:00Z"},
			File:   &lineage.File{Path: "app/web.yaml", Line: 12},
		},
		"byhand": {
			Object: template, Managers: []string{"kubectl", "team-tool"},
			Binding: &lineage.Binding{Object: lineage.Object{Kind: "ResourceBinding", Namespace: "shop", Name: "web-deployment"},
				Decided: "2026-03-05T08:00:01Z", Outcome: "NoClusterFit", Message: "0/3 clusters are available"},
		},
	}
	for name, trace := range cases {
		t.Run(name, func(t *testing.T) {
			golden(t, "trace-"+name+".txt", func(w io.Writer) error { return trace.Text(w, lineage.TextOptions{}) })
			golden(t, "trace-"+name+"-80.txt", func(w io.Writer) error { return trace.Text(w, lineage.TextOptions{Width: 80}) })
			for _, width := range []int{40, 80, 120} {
				var out strings.Builder
				if err := trace.Text(&out, lineage.TextOptions{Width: width}); err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(out.String()) {
					if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
						t.Errorf("on %d columns a line has %d: %s", width, n, line)
					}
				}
			}
		})
	}
}

func TestTree(t *testing.T) {
	leaf := func(cluster, text string) lineage.Node {
		return lineage.Node{Object: *work(cluster), State: situation.Ready, Children: []lineage.Node{{Object: web(cluster), Text: text}}}
	}
	binding := lineage.Node{
		Object: lineage.Object{Kind: "ResourceBinding", Namespace: "shop", Name: "web-deployment"}, Text: "east 2, west 1",
		Children: []lineage.Node{leaf("east", "Healthy"), leaf("west", "not applied")},
	}
	root := lineage.Node{
		Object: lineage.Object{Kind: "Kustomization", Namespace: "default", Name: "web"}, State: situation.Progressing, Text: "main@sha1:9f2c8c1d",
		Children: []lineage.Node{
			{Object: lineage.Object{Kind: "Namespace", Name: "shop"}},
			{Object: web(""), State: situation.Progressing, Text: "1/2 clusters: west: \x1b[31mno", Children: []lineage.Node{binding}},
			{Object: lineage.Object{Kind: "PropagationPolicy", Namespace: "shop", Name: "web"}},
		},
	}
	draw := func(n lineage.Node, ascii bool) func(io.Writer) error {
		return func(w io.Writer) error { return n.Draw(w, lineage.TreeOptions{ASCII: ascii}) }
	}
	golden(t, "tree.txt", draw(root, false))
	golden(t, "tree-ascii.txt", draw(root, true))
	golden(t, "tree-compact.txt", draw(root.Compact(), false))
}

// TestATraceOfNotes: what is gone has notes alone, each after one empty line.
func TestATraceOfNotes(t *testing.T) {
	var out strings.Builder
	trace := lineage.Trace{Object: lineage.Object{Kind: "Deployment", Namespace: "shop", Name: "web"}, Notes: []string{"It is gone.", "So is its Kustomization."}}
	if err := trace.Text(&out, lineage.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	const want = "Deployment shop/web\n\nIt is gone.\n\nSo is its Kustomization.\n"
	if out.String() != want {
		t.Errorf("it says %q, want %q", out.String(), want)
	}
}
