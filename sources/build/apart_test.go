package build_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/build"
)

// elsewhere is a fake Runner that records its jobs.
type elsewhere struct {
	asked []build.Job
	deaf  bool // Run returns an error without building
}

func (e *elsewhere) Run(ctx context.Context, job build.Job) ([][]byte, error) {
	e.asked = append(e.asked, job)
	if e.deaf {
		return nil, errors.New("not done")
	}
	objects, err := build.New(job.Limits).Build(ctx, job.Input)
	var out [][]byte
	for _, o := range objects {
		text, err := json.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, err
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "---\n%s", configMap(fmt.Sprintf("config-%d", i)))
	}
	return b.String()
}

// TestWhatIsBuiltApart checks that a build is not done in this process if it
// could go on after its context has ended, or affect other builds.
func TestWhatIsBuiltApart(t *testing.T) {
	schema := `{"definitions": {}}`
	cases := map[string]struct {
		files map[string]string
		apart bool
	}{
		"manifests alone":         {files: map[string]string{"a.yaml": many(400)}},
		"many manifests":          {files: map[string]string{"a.yaml": many(600)}, apart: true},
		"many manifests by files": {files: map[string]string{"a.yaml": many(400), "b.yaml": dense("b", 30), "c.yaml": strings.ReplaceAll(many(400), "config-", "more-")}, apart: true},
		"an object of many nodes": {files: map[string]string{"a.yaml": dense("a", 60_000)}, apart: true},
		"one of many bytes":       {files: map[string]string{"a.yaml": configMap("a") + "  x: " + strings.Repeat("x", 2<<20) + "\n"}, apart: true},
		"a few objects with a prefix": {
			files: map[string]string{"kustomization.yaml": "namePrefix: x-\nresources: [a.yaml]\n", "a.yaml": many(30)},
		},
		"many objects with a prefix": {
			files: map[string]string{"kustomization.yaml": "namePrefix: x-\nresources: [a.yaml]\n", "a.yaml": many(600)}, apart: true,
		},
		"a schema of its own": {
			files: map[string]string{"kustomization.yaml": "openapi: {path: schema.json}\nresources: [a.yaml]\n", "a.yaml": many(1), "schema.json": schema}, apart: true,
		},
		"a version of the schema": {
			files: map[string]string{"kustomization.yaml": "openapi: {version: v1.21.2}\nresources: [a.yaml]\n", "a.yaml": many(1)}, apart: true,
		},
		"definitions of its own": {
			files: map[string]string{"kustomization.yaml": "crds: [crd.json]\nresources: [a.yaml]\n", "a.yaml": many(1), "crd.json": "{}"}, apart: true,
		},
		"an object of many nodes with a prefix": {
			files: map[string]string{"kustomization.yaml": "namePrefix: x-\nresources: [a.yaml]\n", "a.yaml": dense("a", 60_000)}, apart: true,
		},
		"a few objects with a thousand patches": {
			files: map[string]string{
				"kustomization.yaml": "resources: [a.yaml]\npatches:\n" + strings.Repeat("- {target: {kind: ConfigMap}, patch: '[{op: add, path: /data/x, value: y}]'}\n", 3000),
				"a.yaml":             many(100),
			}, apart: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			runner := &elsewhere{deaf: true}
			if _, err := build.NewApart(build.Limits{}, runner).Build(t.Context(), build.Input{Files: files(tc.files)}); err != nil && !tc.apart {
				t.Fatal(err)
			}
			if got := len(runner.asked) > 0; got != tc.apart {
				t.Errorf("built apart: %v, want %v", got, tc.apart)
			}
		})
	}
}

// TestApartIsTheSame checks that a build by a Runner has the same result.
func TestApartIsTheSame(t *testing.T) {
	source := map[string]string{
		"app/kustomization.yaml":      "namePrefix: x-\nresources: [base, ../lib/more.yaml]\nconfigMapGenerator: [{name: g, files: [key=../lib/text.txt], envs: [e.env]}]\npatches: [{path: p.yaml, target: {kind: Deployment}}]\ntransformers: [t.yaml]\nopenapi: {version: v1.21.2}\n",
		"app/base/kustomization.yaml": "resources: [d.yaml]\n", "app/base/d.yaml": deployment("web", "nginx:1"),
		"app/e.env": "a=b\n", "app/p.yaml": "- {op: add, path: /spec/replicas, value: 3}\n",
		"app/t.yaml":    "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: l}\nlabels: {team: a}\nfieldSpecs: [{path: metadata/labels, create: true}]\n",
		"lib/more.yaml": configMap("more"), "lib/text.txt": "text", "other/secret.yaml": "kind: Secret",
	}
	runner := &elsewhere{}
	in := build.Input{Files: files(source), Path: "app"}
	apart, err := build.NewApart(build.Limits{}, runner).Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	here, err := build.New(build.Limits{}).Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(here, apart); diff != "" {
		t.Errorf("objects (-here +apart):\n%s", diff)
	}
	if len(runner.asked) != 1 {
		t.Errorf("asked %d times", len(runner.asked))
	}
}

// TestManifestsEndWithTheContext checks that reading manifests in this process,
// of any size, ends with the context.
func TestManifestsEndWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("given up")
	cancel(why)
	_, err := build.New(build.Limits{}).Build(ctx, build.Input{Files: files(map[string]string{"a.yaml": many(3)})})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want that of the context", err)
	}
}

func TestABuildThatGoesOnHoldsUpItsTenant(t *testing.T) {
	in := build.Input{Tenant: "shop", Files: files(map[string]string{"kustomization.yaml": "namePrefix: x-\nresources: [a.yaml]\n", "a.yaml": many(400)})}
	runner := &elsewhere{}
	builder := build.NewApart(build.Limits{}, runner)
	leave := build.Overrun(t, builder, "shop")
	for tenant, apart := range map[string]int{"blog": 0, "shop": 1} {
		in.Tenant, runner.asked = tenant, nil
		if _, err := builder.Build(t.Context(), in); err != nil || len(runner.asked) != apart {
			t.Errorf("%s: %d builds apart, want %d, error %v", tenant, len(runner.asked), apart, err)
		}
	}
	leave()
	runner.asked = nil
	if _, err := builder.Build(t.Context(), in); err != nil || len(runner.asked) != 0 {
		t.Errorf("after it has ended: %d builds apart, error %v", len(runner.asked), err)
	}
}
