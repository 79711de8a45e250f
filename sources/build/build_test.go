package build_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/sources/build"
)

func files(pairs map[string]string) map[string][]byte {
	out := map[string][]byte{}
	for name, content := range pairs {
		out[name] = []byte(content)
	}
	return out
}

// names returns the objects in order, as kind/namespace/name.
func names(objects []*unstructured.Unstructured) []string {
	var out []string
	for _, o := range objects {
		name := o.GetKind() + "/" + o.GetName()
		if ns := o.GetNamespace(); ns != "" {
			name = o.GetKind() + "/" + ns + "/" + o.GetName()
		}
		out = append(out, name)
	}
	return out
}

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n"
}

func deployment(name, image string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: " + name + "\nspec:\n  replicas: 2\n  selector:\n    matchLabels: {app: " + name + "}\n" +
		"  template:\n    metadata:\n      labels: {app: " + name + "}\n    spec:\n      containers:\n      - name: main\n        image: " + image + "\n"
}

func TestBuild(t *testing.T) {
	cases := map[string]struct {
		files map[string]string
		path  string
		spec  build.Spec
		want  []string
	}{
		"a folder of manifests, with those below it": {
			files: map[string]string{"app/b.yaml": configMap("b"), "app/sub/a.yml": configMap("a"), "app/notes.txt": "no: [yaml", "other.yaml": "no: [yaml"},
			path:  "./app", want: []string{"ConfigMap/a", "ConfigMap/b"},
		},
		"a folder of manifests with a kustomization below it": {
			files: map[string]string{"a.yaml": configMap("a"), "sub/kustomization.yaml": "namePrefix: x-\nresources: [b.yaml]\n", "sub/b.yaml": configMap("b"), "sub/ignored.yaml": configMap("c")},
			want:  []string{"ConfigMap/a", "ConfigMap/x-b"},
		},
		"several documents, comments, a byte order mark, carriage returns and lists": {
			files: map[string]string{
				"a.yaml": "\xef\xbb\xbf# a comment\n---\n" + configMap("a") + "---\n# nothing\n---\n" + configMap("b"),
				"b.yaml": strings.ReplaceAll(configMap("c"), "\n", "\r\n"),
				"c.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: d}}\n- {apiVersion: v1, kind: Service, metadata: {name: e}}\n",
				"d.yaml": "# only a comment\n",
			},
			want: []string{"ConfigMap/a", "ConfigMap/b", "ConfigMap/c", "Secret/d", "Service/e"},
		},
		"in the order in which to apply": {
			files: map[string]string{
				"1.yaml": deployment("web", "nginx"), "2.yaml": configMap("web"),
				"3.yaml": "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: web}\n",
				"4.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n", "5.yaml": "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: web}\n",
				"6.yaml": "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: web}\n",
			},
			want: []string{"Namespace/shop", "PropagationPolicy/web", "ConfigMap/web", "Deployment/web", "Thing/web", "ValidatingWebhookConfiguration/web"},
		},
		"an overlay with a base and a component": {
			files: map[string]string{
				"base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.yaml": deployment("web", "nginx"),
				"part/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [extra.yaml]\nnamePrefix: c-\n", "part/extra.yaml": configMap("extra"),
				"prod/kustomization.yml": "resources: [../base]\ncomponents: [../part]\nnamespace: prod\n",
			},
			path: "prod", want: []string{"ConfigMap/prod/c-extra", "Deployment/prod/c-web"},
		},
		"a file of another folder, as Flux allows": {
			files: map[string]string{"app/kustomization.yaml": "resources: [web.yaml]\npatches: [{path: ../shared/patch.yaml}]\n", "app/web.yaml": deployment("web", "nginx"), "shared/patch.yaml": deployment("web", "caddy")},
			path:  "app", want: []string{"Deployment/web"},
		},
		"the fields of the Kustomization": {
			files: map[string]string{"app/web.yaml": deployment("web", "nginx"), "part/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [extra.yaml]\n", "part/extra.yaml": configMap("extra")},
			spec:  build.Spec{TargetNamespace: "shop", NamePrefix: "p-", NameSuffix: "-s", Components: []string{"../part", "gone"}, IgnoreMissingComponents: true},
			path:  "app", want: []string{"ConfigMap/shop/p-extra-s", "Deployment/shop/p-web-s"},
		},
		"a base that is used twice under two names": {
			files: map[string]string{
				"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": configMap("a"),
				"one/kustomization.yaml": "resources: [../base]\nnamePrefix: one-\n", "two/kustomization.yaml": "resources: [../base]\nnamePrefix: two-\n",
				"kustomization.yaml": "resources: [one, two]\n",
			},
			want: []string{"ConfigMap/one-a", "ConfigMap/two-a"},
		},
		"objects that are generated": {
			files: map[string]string{"kustomization.yaml": "configMapGenerator:\n- name: c\n  files: [k=v.txt]\ngeneratorOptions: {disableNameSuffixHash: true}\n", "v.txt": "value"},
			want:  []string{"ConfigMap/c"},
		},
		"kustomize's own transformers": {
			files: map[string]string{
				"kustomization.yaml": "resources: [a.yaml]\ntransformers: [t.yaml]\n", "a.yaml": configMap("a"),
				"t.yaml": "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: p, annotations: {see: 'https://example.com'}}\nprefix: t-\nfieldSpecs: [{path: metadata/name}]\n",
			},
			want: []string{"ConfigMap/t-a"},
		},
	}
	builder := build.New(build.Limits{})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := builder.Build(t.Context(), build.Input{Files: files(tc.files), Path: tc.path, Spec: tc.spec})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, names(got)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuildContent(t *testing.T) {
	source := files(map[string]string{
		"kustomization.yaml": "resources: [web.yaml, crd.yaml, raw.yaml]\nimages: [{name: nginx, newTag: '1.0', newName: registry/nginx}]\n",
		"web.yaml":           deployment("web", "nginx") + "  paused: ${paused}\n",
		"crd.yaml":           "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\nspec: {group: '${paused}'}\n",
		"raw.yaml":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: raw, annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}}\ndata: {a: '${paused}', big: '12345678901234567890', yes: 'yes'}\n",
	})
	got, err := build.New(build.Limits{}).Build(t.Context(), build.Input{Files: source, Spec: build.Spec{
		Images:    []kustomize.Image{{Name: "nginx", Digest: "sha256:" + strings.Repeat("a", 64)}},
		Patches:   []kustomize.Patch{{Patch: `[{"op": "replace", "path": "/spec/replicas", "value": 5}]`, Target: &kustomize.Selector{Kind: "Deployment"}}},
		Labels:    map[string]string{"team": "shop"},
		Variables: map[string]string{"paused": "true"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, o := range got {
		doc, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n" + string(doc))
	}
	want := `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  labels:
    team: shop
  name: x
spec:
  group: ${paused}
---
apiVersion: v1
data:
  a: ${paused}
  big: "12345678901234567890"
  "yes": "yes"
kind: ConfigMap
metadata:
  annotations:
    kustomize.toolkit.fluxcd.io/substitute: disabled
  labels:
    team: shop
  name: raw
---
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    team: shop
  name: web
spec:
  paused: true
  replicas: 5
  selector:
    matchLabels:
      app: web
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
      - image: registry/nginx@sha256:` + strings.Repeat("a", 64) + `
        name: main
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestValues(t *testing.T) {
	text := `apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {date: 2020-01-01, time: 2001-12-14t21:59:43.10-05:00, on: on, yes: yes, true: true, octal: 0o17, hex: 0x1F, huge: 18446744073709551615,
  whole: 1.0, thousand: 1e3, half: 0.5, none: ~, empty: , quoted: '1', base: &x {q: 1, z: 1}, merged: {<<: *x, z: 2}, merges: {<<: [*x, {w: 3}]}, tagged: !!str 12, list: [*x]}
`
	for name, spec := range map[string]build.Spec{"as they are": {}, "through variables": {AlwaysSubstitute: true}} {
		t.Run(name, func(t *testing.T) {
			got, err := build.New(build.Limits{}).Build(t.Context(), build.Input{Files: files(map[string]string{"a.yaml": text}), Spec: spec})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{
				"date": "2020-01-01", "time": "2001-12-14t21:59:43.10-05:00", "on": "on", "yes": "yes", "true": true, "octal": int64(15), "hex": int64(31),
				"huge": float64(1 << 64), "whole": int64(1), "thousand": int64(1000), "half": 0.5, "none": nil, "empty": nil, "quoted": "1",
				"base": map[string]any{"q": int64(1), "z": int64(1)}, "merged": map[string]any{"q": int64(1), "z": int64(2)},
				"merges": map[string]any{"q": int64(1), "z": int64(1), "w": int64(3)}, "tagged": "12", "list": []any{map[string]any{"q": int64(1), "z": int64(1)}},
			}
			if diff := cmp.Diff(want, got[0].Object["data"]); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

// TestScriptsAreLeftAlone: what looks like a variable in Lua is none; beside the scripts variables are replaced.
func TestScriptsAreLeftAlone(t *testing.T) {
	text := `apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: "${name}"}
spec:
  target: {apiVersion: example.com/v1, kind: Web}
  customizations:
    retention:
      luaScript: |
        function Retain(desired, observed) return "${name} ${other:=x} $${y} ${" end
`
	spec := build.Spec{Variables: map[string]string{"name": "web"}, StrictVariables: true}
	got, err := build.New(build.Limits{}).Build(t.Context(), build.Input{Files: files(map[string]string{"a.yaml": text}), Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{
			"target":         map[string]any{"apiVersion": "example.com/v1", "kind": "Web"},
			"customizations": map[string]any{"retention": map[string]any{"luaScript": "function Retain(desired, observed) return \"${name} ${other:=x} $${y} ${\" end\n"}},
		},
	}
	if diff := cmp.Diff(want, got[0].Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func bomb() string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\na0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for n := range 9 {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", n+1, n+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", n), 9), ", "))
	}
	return b.String()
}

// doubling returns the steps of a JSON patch, each of which doubles the data.
func doubling() string {
	steps := []string{`{"op": "add", "path": "/data", "value": {"a": "some text"}}`}
	for n := range 32 {
		steps = append(steps, fmt.Sprintf(`{"op": "copy", "from": "/data", "path": "/data/c%d"}`, n))
	}
	return strings.Join(steps, ", ")
}

func TestBuildRefuses(t *testing.T) {
	with := func(kustomization string) map[string]string {
		return map[string]string{"kustomization.yaml": kustomization, "a.yaml": configMap("a")}
	}
	const lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
	deep := map[string]string{}
	for n := range 200 {
		deep[fmt.Sprintf("d%d/kustomization.yaml", n)] = fmt.Sprintf("resources: [../d%d]\n", n+1)
	}
	cases := map[string]struct {
		files  map[string]string
		path   string
		spec   build.Spec
		limits build.Limits
		want   error
		says   string
	}{
		"a manifest in Git LFS":                 {files: map[string]string{"a.yaml": lfs}, want: build.ErrInvalid, says: `or annotate the GitRepository that it is of with gitops.flotilla.io/lfs: "true"; where that stands, see whether that could be fetched`},
		"a listed manifest in Git LFS":          {files: map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": lfs}, want: build.ErrInvalid, says: "a.yaml: Git LFS keeps its content elsewhere"},
		"a generator's file in Git LFS":         {files: map[string]string{"kustomization.yaml": "configMapGenerator: [{name: x, files: [a.bin]}]\n", "a.bin": lfs}, want: build.ErrInvalid, says: "a.bin: Git LFS keeps its content elsewhere"},
		"a patch in Git LFS":                    {files: map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatches: [{path: p.yaml}]\n", "a.yaml": configMap("a"), "p.yaml": lfs}, want: build.ErrInvalid, says: "p.yaml: Git LFS keeps its content elsewhere"},
		"a path that is not there":              {files: map[string]string{"deploy/a.yaml": configMap("a")}, path: "./prod", want: build.ErrPath, says: "which has deploy"},
		"a path that is a file":                 {files: map[string]string{"a.yaml": configMap("a")}, path: "a.yaml", want: build.ErrPath, says: "name its folder"},
		"a path that leads out":                 {files: map[string]string{"a.yaml": configMap("a")}, path: "../x", want: build.ErrPath, says: "leads out"},
		"no files":                              {want: build.ErrPath},
		"a folder without manifests":            {files: map[string]string{"deploy/README.md": "x"}, path: "deploy", want: build.ErrEmpty, says: "./deploy"},
		"a folder with comments only":           {files: map[string]string{"deploy/a.yaml": "# x\n"}, path: "deploy", want: build.ErrEmpty},
		"a kustomization without resources":     {files: map[string]string{"kustomization.yaml": "namespace: x\n"}, want: build.ErrEmpty, says: "lists no resources"},
		"an empty kustomization":                {files: map[string]string{"kustomization.yaml": ""}, want: build.ErrEmpty},
		"a kustomization with an unknown field": {files: with("resource: [a.yaml]\n"), want: build.ErrInvalid, says: "resource"},
		"two kustomizations in a folder":        {files: map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "kustomization.yml": "resources: [a.yaml]\n"}, want: build.ErrInvalid, says: "keep one"},
		"a kustomization that does not parse":   {files: with("resources: [a.yaml\n"), want: build.ErrInvalid, says: "kustomization.yaml"},
		"a resource that is not there":          {files: with("resources: [b.yaml]\n"), want: build.ErrInvalid, says: `"b.yaml" is not in the source`},
		"a folder that has no kustomization":    {files: map[string]string{"kustomization.yaml": "resources: [sub]\n", "sub/a.yaml": configMap("a")}, want: build.ErrInvalid, says: "used by ./"},
		"a kustomization that uses itself":      {files: map[string]string{"a/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resources: [../a]\n"}, path: "a", want: build.ErrInvalid, says: "uses itself"},
		"kustomizations nested too deep":        {files: deep, path: "d0", want: build.ErrTooLarge, says: "nested"},
		"a patch for nothing":                   {files: with("resources: [a.yaml]\npatches: [{patch: '" + `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"z"}}` + "'}]\n"), want: build.ErrKustomize, says: "z"},
		"a JSON patch at index -1":              {files: with("resources: [a.yaml]\npatches: [{target: {kind: ConfigMap}, patch: '" + `[{"op":"remove","path":"/data/list/-1"}]` + "'}]\n"), want: build.ErrKustomize},

		"a base on GitHub":               {files: with("resources: [github.com/org/repo]\n"), want: build.ErrRefused, says: "remote"},
		"a base on GitHub, in capitals":  {files: with("resources: ['GitHub.com/org/repo//x?ref=v1']\n"), want: build.ErrRefused, says: "remote"},
		"a base by https":                {files: with("resources: ['https://example.com/org/repo']\n"), want: build.ErrRefused, says: "remote"},
		"a base by https, in capitals":   {files: with("resources: ['HTTPS:example.com']\n"), want: build.ErrRefused, says: "remote"},
		"a base by ssh":                  {files: with("resources: ['git@example.com:org/repo.git']\n"), want: build.ErrRefused, says: "remote"},
		"a base by a forced protocol":    {files: with("bases: ['git::https://example.com/repo']\n"), want: build.ErrRefused, says: "remote"},
		"a base that is a local clone":   {files: with("resources: ['file:///etc//x']\n"), want: build.ErrRefused, says: "remote"},
		"a folder with a host's name":    {files: map[string]string{"kustomization.yaml": "resources: [github.com/org/repo]\n", "github.com/org/repo/kustomization.yaml": "resources: [a.yaml]\n", "github.com/org/repo/a.yaml": configMap("a")}, want: build.ErrRefused},
		"an absolute path":               {files: with("resources: [/etc/passwd]\n"), want: build.ErrRefused, says: "absolute"},
		"a remote component":             {files: with("resources: [a.yaml]\ncomponents: ['https://example.com/x']\n"), want: build.ErrRefused},
		"a remote component of the spec": {files: with("resources: [a.yaml]\n"), spec: build.Spec{Components: []string{"https://example.com/x"}}, want: build.ErrRefused, says: "spec.components"},
		"a remote patch":                 {files: with("resources: [a.yaml]\npatches: [{path: 'http://169.254.169.254/x'}]\n"), want: build.ErrRefused},
		"a remote patch, the old way":    {files: with("resources: [a.yaml]\npatchesStrategicMerge: ['http://example.com/x']\n"), want: build.ErrRefused},
		"a remote file in a generator":   {files: with("resources: [a.yaml]\nconfigMapGenerator: [{name: x, files: ['k=http://example.com/x']}]\n"), want: build.ErrRefused},
		"a file outside in a generator":  {files: with("resources: [a.yaml]\nconfigMapGenerator: [{name: x, files: ['k=../../../etc/passwd']}]\n"), want: build.ErrInvalid, says: "not in the source"},
		"a remote environment":           {files: with("resources: [a.yaml]\nsecretGenerator: [{name: x, envs: ['http://example.com/x']}]\n"), want: build.ErrRefused},
		"remote custom resources":        {files: with("resources: [a.yaml]\ncrds: ['http://example.com/x']\n"), want: build.ErrRefused},
		"a remote configuration":         {files: with("resources: [a.yaml]\nconfigurations: ['http://example.com/x']\n"), want: build.ErrRefused},
		"a remote schema":                {files: with("resources: [a.yaml]\nopenapi: {path: 'http://example.com/x'}\n"), want: build.ErrRefused},
		"remote replacements":            {files: with("resources: [a.yaml]\nreplacements: [{path: 'http://example.com/x'}]\n"), want: build.ErrRefused},
		"a Helm chart":                   {files: with("resources: [a.yaml]\nhelmCharts: [{name: x}]\n"), want: build.ErrRefused, says: "Helm"},
		"a Helm chart by a plugin":       {files: with("resources: [a.yaml]\ngenerators:\n- |-\n  apiVersion: builtin\n  kind: HelmChartInflationGenerator\n  metadata: {name: x}\n"), want: build.ErrRefused},
		"a plugin that is a program":     {files: with("resources: [a.yaml]\ntransformers:\n- |-\n  apiVersion: example.com/v1\n  kind: Evil\n  metadata: {name: x, annotations: {config.kubernetes.io/function: 'exec: {path: ./x}'}}\n"), want: build.ErrRefused},
		"a plugin in a container":        {files: with("resources: [a.yaml]\nvalidators:\n- |-\n  apiVersion: v1\n  kind: Evil\n  metadata: {name: x, annotations: {config.kubernetes.io/function: 'container: {image: x}'}}\n"), want: build.ErrRefused},
		"a plugin that reads remotely":   {files: with("resources: [a.yaml]\ntransformers:\n- |-\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: x}\n  path: http://example.com/x\n"), want: build.ErrRefused},
		"a remote environment, with =":   {files: with("resources: [a.yaml]\nsecretGenerator: [{name: x, envs: ['http://127.0.0.1:1/x?y=a.yaml']}]\n"), want: build.ErrRefused, says: "remote"},
		"a remote address by an alias":   {files: with("resources: [a.yaml]\ntransformers:\n- |-\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: x, annotations: {a: &u 'http://127.0.0.1:1/x'}}\n  path: *u\n"), want: build.ErrRefused, says: "remote"},
		"a remote address by a merge":    {files: with("resources: [a.yaml]\ntransformers:\n- |-\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: x, annotations: &m {path: 'http://127.0.0.1:1/x'}}\n  <<: *m\n"), want: build.ErrRefused, says: "remote"},
		"a plugin on one line":           {files: with("resources: [a.yaml]\ntransformers: ['{apiVersion: example.com/v1, kind: Evil, metadata: {name: x}}']\n"), want: build.ErrRefused, says: "not a plugin"},
		"a folder of plugins":            {files: map[string]string{"kustomization.yaml": "resources: [a.yaml]\ntransformers: [t]\n", "a.yaml": configMap("a"), "t/kustomization.yaml": "resources: [x.yaml]\n"}, want: build.ErrRefused},

		"YAML that does not parse":             {files: map[string]string{"app/a.yaml": "a: [b\n"}, want: build.ErrInvalid, says: "app/a.yaml"},
		"a tab":                                {files: map[string]string{"a.yaml": "a:\n\tb: c\n"}, want: build.ErrInvalid, says: "a.yaml"},
		"bytes that are no text":               {files: map[string]string{"a.yaml": "a: \xff\xfe\n"}, want: build.ErrInvalid},
		"a key twice":                          {files: map[string]string{"a.yaml": configMap("a") + "data: {x: '1', x: '2'}\n"}, want: build.ErrInvalid, says: `the key "x" is there twice`},
		"YAML that is no object":               {files: map[string]string{"values.yaml": "replicas: 3\n"}, want: build.ErrInvalid, says: "keep other YAML out"},
		"a list of texts":                      {files: map[string]string{"a.yaml": "- a\n- b\n"}, want: build.ErrInvalid},
		"no kind":                              {files: map[string]string{"a.yaml": "apiVersion: v1\nmetadata: {name: a}\n"}, want: build.ErrInvalid, says: "kind is missing"},
		"no name":                              {files: map[string]string{"a.yaml": configMap("a") + "---\napiVersion: v1\nkind: ConfigMap\n"}, want: build.ErrInvalid, says: "a.yaml (document 2)"},
		"a generated name":                     {files: map[string]string{"a.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {generateName: x-}\n"}, want: build.ErrInvalid, says: "generateName"},
		"a name that reads backwards":          {files: map[string]string{"a.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: \"a\\u202eb\"}\n"}, want: build.ErrInvalid, says: "cannot be seen"},
		"a broken list":                        {files: map[string]string{"a.yaml": "apiVersion: v1\nkind: List\nitems: x\n"}, want: build.ErrInvalid},
		"the same object twice in a file":      {files: map[string]string{"a.yaml": configMap("a") + "---\n" + configMap("a")}, want: build.ErrDuplicate, says: "a.yaml (document 1) and in a.yaml (document 2)"},
		"the same object in two files":         {files: map[string]string{"a.yaml": configMap("a"), "sub/b.yaml": configMap("a")}, want: build.ErrDuplicate, says: "it is in a.yaml and in sub/b.yaml"},
		"the same object under two versions":   {files: map[string]string{"a.yaml": "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\n", "b.yaml": "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\n"}, want: build.ErrDuplicate},
		"a base that is used twice":            {files: map[string]string{"kustomization.yaml": "resources: [base, two]\n", "base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": configMap("a"), "two/kustomization.yaml": "resources: [../base]\n"}, want: build.ErrDuplicate},
		"a YAML bomb":                          {files: map[string]string{"a.yaml": bomb()}, want: build.ErrTooLarge, says: "aliases"},
		"a YAML bomb in a kustomization":       {files: map[string]string{"kustomization.yaml": bomb(), "a.yaml": configMap("a")}, want: build.ErrTooLarge},
		"a YAML bomb in a patch":               {files: map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatches: [{path: p.yaml}]\n", "a.yaml": configMap("a"), "p.yaml": bomb()}, want: build.ErrTooLarge},
		"a YAML bomb in a plugin's file":       {files: map[string]string{"kustomization.yaml": "resources: [a.yaml]\ntransformers: [t.yaml]\n", "a.yaml": configMap("bomb"), "p.yaml": bomb(), "t.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\npath: p.yaml\n"}, want: build.ErrTooLarge, says: "p.yaml"},
		"a YAML bomb in a plugin's patch":      {files: map[string]string{"kustomization.yaml": "resources: [a.yaml]\ntransformers: [t.yaml]\n", "a.yaml": configMap("bomb"), "t.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\npatch: |\n  " + strings.ReplaceAll(bomb(), "\n", "\n  ") + "\n"}, want: build.ErrTooLarge, says: "aliases"},
		"a patch that doubles and doubles":     {files: map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatches: [{target: {kind: ConfigMap}, patch: '[" + doubling() + "]'}]\n", "a.yaml": configMap("a")}, want: build.ErrKustomize, says: "copy"},
		"an alias that refers to itself":       {files: map[string]string{"a.yaml": configMap("a") + "data: &a {x: *a}\n"}, want: build.ErrInvalid, says: "refers to itself"},
		"a document nested too deep":           {files: map[string]string{"a.yaml": configMap("a") + "data: " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "\n"}, want: build.ErrTooLarge, says: "nested"},
		"a document that is too large":         {files: map[string]string{"a.yaml": configMap("a") + "data: {x: '" + strings.Repeat("x", 3<<20) + "'}\n"}, want: build.ErrTooLarge},
		"a number without end":                 {files: map[string]string{"a.yaml": configMap("a") + "data: {x: .inf}\n"}, want: build.ErrInvalid, says: ".inf"},
		"a generated object that is too large": {files: map[string]string{"kustomization.yaml": "configMapGenerator: [{name: c, files: [v.txt]}]\n", "v.txt": strings.Repeat("x", 4<<20)}, want: build.ErrTooLarge, says: "ConfigMap c"},
		"too many objects":                     {files: map[string]string{"a.yaml": strings.Repeat("---\n"+configMap("a"), 1), "b.yaml": configMap("b")}, limits: build.Limits{Objects: 1}, want: build.ErrTooLarge},
		"too many objects by using some often": {files: map[string]string{"kustomization.yaml": "resources: [x, z]\n", "x/kustomization.yaml": "resources: [../a]\nnamePrefix: x-\n", "z/kustomization.yaml": "resources: [../a]\nnamePrefix: z-\n", "a/kustomization.yaml": "resources: [a.yaml]\n", "a/a.yaml": configMap("a") + "---\n" + configMap("b")}, limits: build.Limits{Objects: 3}, want: build.ErrTooLarge, says: "a/a.yaml"},
		"too many objects by generators":       {files: map[string]string{"kustomization.yaml": "configMapGenerator: [{name: a}, {name: b}]\n"}, limits: build.Limits{Objects: 1}, want: build.ErrTooLarge, says: "kustomization.yaml"},
		"a file that is used too often":        {files: map[string]string{"kustomization.yaml": "configMapGenerator: [{name: a, files: [x]}, {name: b, files: [y=x]}]\n", "x": strings.Repeat("x", 100)}, limits: build.Limits{Bytes: 150}, want: build.ErrTooLarge, says: "as often"},
		"a variable that has no value":         {files: map[string]string{"a.yaml": configMap("a") + "data: {x: '${y}'}\n"}, spec: build.Spec{StrictVariables: true, AlwaysSubstitute: true}, want: build.ErrSubstitute, says: "ConfigMap a"},
		"a variable that is not closed":        {files: map[string]string{"a.yaml": configMap("a") + "data: {x: '${y'}\n"}, spec: build.Spec{AlwaysSubstitute: true}, want: build.ErrSubstitute, says: "$${"},
		"a variable's name":                    {files: map[string]string{"a.yaml": configMap("a")}, spec: build.Spec{Variables: map[string]string{"a-b": "x"}}, want: build.ErrSubstitute},
		"a value that breaks the object":       {files: map[string]string{"a.yaml": configMap("a") + "data:\n  x: ${v}\n"}, spec: build.Spec{Variables: map[string]string{"v": "CANARY: ]["}}, want: build.ErrSubstitute, says: "quote the variable"},
		"values that add up to too much":       {files: map[string]string{"a.yaml": configMap("a") + "data: {x: '" + strings.Repeat("${v}", 1000) + "'}\n"}, spec: build.Spec{Variables: map[string]string{"v": strings.Repeat("x", 1<<20)}}, want: build.ErrTooLarge, says: "ConfigMap a"},
		"a replacement that multiplies":        {files: map[string]string{"a.yaml": configMap("a") + "data: {x: '${v//x/" + strings.Repeat("y", 10_000) + "}'}\n"}, spec: build.Spec{Variables: map[string]string{"v": strings.Repeat("x", 1<<19)}}, want: build.ErrTooLarge, says: "ConfigMap a"},
		"a replacement of nothing":             {files: map[string]string{"a.yaml": configMap("a") + "data: {x: '${v//${n}/" + strings.Repeat("y", 10_000) + "}'}\n"}, spec: build.Spec{Variables: map[string]string{"v": strings.Repeat("x", 1<<19)}}, want: build.ErrTooLarge, says: "ConfigMap a"},
		"a trimming that takes for ever":       {files: map[string]string{"a.yaml": configMap("a") + "data: {x: '${v##*y*z}'}\n"}, spec: build.Spec{Variables: map[string]string{"v": strings.Repeat("y", 1<<19)}}, want: build.ErrTooLarge, says: "ConfigMap a"},
		"a part of a value that is nowhere":    {files: map[string]string{"a.yaml": configMap("a") + "data: {x: '${v:9223372036854775807:9}'}\n"}, spec: build.Spec{Variables: map[string]string{"v": "x"}}, want: build.ErrSubstitute, says: "ConfigMap a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			got, err := build.New(tc.limits).Build(ctx, build.Input{Files: files(tc.files), Path: tc.path, Spec: tc.spec})
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("Build = %v, %v; want %v saying %q", names(got), err, tc.want, tc.says)
			}
			if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("not fit for a message: %q", err)
			}
		})
	}
}

func TestBombIsCheap(t *testing.T) {
	source := files(map[string]string{"a.yaml": bomb()})
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			_, _ = build.New(build.Limits{}).Build(b.Context(), build.Input{Files: source})
		}
	})
	t.Logf("a bomb costs %s and %d bytes", time.Duration(result.NsPerOp()), result.AllocedBytesPerOp())
	if result.AllocedBytesPerOp() > 32<<20 {
		t.Errorf("a bomb costs %d bytes, want at most 32 MiB", result.AllocedBytesPerOp())
	}
}

func TestBuildEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := build.New(build.Limits{}).Build(ctx, build.Input{Files: files(map[string]string{"a.yaml": configMap("a")})}); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want context.Canceled", err)
	}
}

func TestBuildAtOnceAndWithOwnSchemas(t *testing.T) {
	builder := build.New(build.Limits{})
	usual := build.Input{Files: files(map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatches: [{path: p.yaml}]\n", "a.yaml": deployment("a", "x"), "p.yaml": deployment("a", "y")})}
	special := build.Input{Files: files(map[string]string{
		"kustomization.yaml": "resources: [a.yaml]\nopenapi: {path: schema.json}\npatches: [{path: p.yaml}]\n",
		"a.yaml":             "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t}\nspec: {parts: [{id: a, v: 1}, {id: b, v: 2}]}\n",
		"p.yaml":             "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t}\nspec: {parts: [{id: b, v: 3}]}\n",
		"schema.json": `{"definitions":{"v1.Thing":{"properties":{"spec":{"properties":{"parts":{"type":"array","items":{"properties":{"id":{"type":"string"}}},
			"x-kubernetes-patch-merge-key":"id","x-kubernetes-patch-strategy":"merge"}}}},"x-kubernetes-group-version-kind":[{"group":"example.com","kind":"Thing","version":"v1"}]}}}`,
	})}
	t.Run("all", func(t *testing.T) {
		for n := range 16 {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				in, path, want := usual, []string{"spec", "template", "spec", "containers"}, 1
				if n%4 == 0 {
					in, path, want = special, []string{"spec", "parts"}, 2
				}
				for range 5 {
					got, err := builder.Build(t.Context(), in)
					if err != nil {
						t.Fatal(err)
					}
					if list, _, _ := unstructured.NestedSlice(got[0].Object, path...); len(list) != want {
						t.Fatalf("%v has %d entries, want %d", path, len(list), want)
					}
				}
			})
		}
	})
}

// realFiles reads a folder of published manifests.
func realFiles(t testing.TB, name string) map[string][]byte {
	t.Helper()
	root := filepath.Join("..", "..", "..", "shared", "testdata", name)
	out := map[string][]byte{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		out[filepath.ToSlash(relative)] = content
		return err
	})
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("the published manifests are not here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestBuildRealApplications(t *testing.T) {
	cases := map[string]struct {
		source, path string
		spec         build.Spec
		want         map[string]int
	}{
		"podinfo":         {source: "podinfo", path: "kustomize", want: map[string]int{"Deployment": 1, "HorizontalPodAutoscaler": 1, "Service": 1}},
		"online-boutique": {source: "online-boutique", path: "kustomize", want: map[string]int{"Deployment": 12, "Service": 12, "ServiceAccount": 11}},
		"online-boutique with components": {
			source: "online-boutique", path: "kustomize", spec: build.Spec{Components: []string{"components/network-policies", "components/without-loadgenerator"}},
			want: map[string]int{"Deployment": 11, "Service": 12, "ServiceAccount": 11, "NetworkPolicy": 13},
		},
		"online-boutique with all components": {
			source: "online-boutique", path: "kustomize/tests/memorystore-with-all-components",
			want: map[string]int{"ConfigMap": 1, "Deployment": 12, "NetworkPolicy": 13, "Service": 12, "ServiceAccount": 11},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := build.New(build.Limits{}).Build(t.Context(), build.Input{Files: realFiles(t, tc.source), Path: tc.path, Spec: tc.spec})
			if err != nil {
				t.Fatal(err)
			}
			kinds := map[string]int{}
			for _, o := range got {
				kinds[o.GetKind()]++
			}
			if diff := cmp.Diff(tc.want, kinds); diff != "" {
				t.Errorf("kinds (-want +got):\n%s", diff)
			}
		})
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, app := range []string{"podinfo", "online-boutique"} {
		source := realFiles(b, app)
		builder := build.New(build.Limits{})
		in := build.Input{Files: source, Path: "kustomize", Spec: build.Spec{TargetNamespace: "shop"}}
		b.Run(app, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := builder.Build(b.Context(), in); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "builds/s")
		})
	}
}

func FuzzBuild(f *testing.F) {
	f.Add("resources: [a.yaml]\n", configMap("a"))
	f.Add("resources: [a.yaml]\npatches: [{patch: '[]', target: {kind: ConfigMap}}]\n", deployment("a", "${x:=y}"))
	f.Add("resources: [a.yaml, 'https://x/y', git@x:y/z]\nnamePrefix: ${\n", bomb())
	f.Add("transformers:\n- |-\n  apiVersion: builtin\n  kind: LabelTransformer\n", "kind: List\nitems: [&a {b: *a}]\n")
	builder := build.New(build.Limits{Document: 1 << 16, Aliases: 1000})
	f.Fuzz(func(t *testing.T, kustomization, manifest string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got, err := builder.Build(ctx, build.Input{
			Files: files(map[string]string{"kustomization.yaml": kustomization, "a.yaml": manifest}),
			Spec:  build.Spec{Variables: map[string]string{"x": "y"}},
		})
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatal("a small input takes longer than a minute")
		}
		for _, o := range got {
			if err == nil && (o.GetName() == "" || o.GetKind() == "") {
				t.Errorf("an object without kind or name: %v", o)
			}
		}
	})
}
