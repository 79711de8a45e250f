package override_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/selector"
)

func deployment() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": "shop", "name": "web", "labels": map[string]any{"app": "web"}},
		"spec": map[string]any{
			"replicas": int64(2),
			"template": map[string]any{"spec": map[string]any{
				"initContainers": []any{map[string]any{"name": "init", "image": "busybox:1"}},
				"containers": []any{
					map[string]any{"name": "app", "image": "nginx:1.25", "args": []any{"-a", "-b", "-a"}},
					map[string]any{"name": "side", "image": "quay.io/side/car@sha256:" + strings.Repeat("0", 64)},
				},
			}},
		},
	}}
}

func configMap(key, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "shop", "name": "conf"},
		"data": map[string]any{key: value},
	}}
}

func policyOf(o policyv1alpha1.Overriders) *policyv1alpha1.OverridePolicy {
	return &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "op"},
		Spec:       policyv1alpha1.OverrideSpec{OverrideRules: []policyv1alpha1.RuleWithCluster{{Overriders: o}}},
	}
}

func raw(s string) apiextensionsv1.JSON { return apiextensionsv1.JSON{Raw: []byte(s)} }

func east() *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
}

func TestApply(t *testing.T) {
	zeros := "sha256:" + strings.Repeat("0", 64)
	ones := "sha256:" + strings.Repeat("1", 64)
	image := func(o ...policyv1alpha1.ImageOverrider) policyv1alpha1.Overriders {
		return policyv1alpha1.Overriders{ImageOverrider: o}
	}
	cases := map[string]struct {
		obj  *unstructured.Unstructured
		with policyv1alpha1.Overriders
		// want are the values at JSON pointers afterwards.
		want map[string]any
		err  string
	}{
		"a registry is added before the repository, init containers are left": {
			obj: deployment(), with: image(policyv1alpha1.ImageOverrider{Component: "Registry", Operator: "replace", Value: "r.example:5000"}),
			want: map[string]any{
				"/spec/template/spec/containers/0/image":     "r.example:5000/nginx:1.25",
				"/spec/template/spec/containers/1/image":     "r.example:5000/side/car@" + zeros,
				"/spec/template/spec/initContainers/0/image": "busybox:1",
			},
		},
		"a registry is removed": {
			obj: deployment(), with: image(policyv1alpha1.ImageOverrider{Component: "Registry", Operator: "remove"}),
			want: map[string]any{"/spec/template/spec/containers/1/image": "side/car@" + zeros},
		},
		"a predicate reaches one image anywhere": {
			obj: deployment(), with: image(policyv1alpha1.ImageOverrider{
				Predicate: &policyv1alpha1.ImagePredicate{Path: "/spec/template/spec/initContainers/0/image"},
				Component: "Tag", Operator: "replace", Value: "2",
			}),
			want: map[string]any{
				"/spec/template/spec/initContainers/0/image": "busybox:2", "/spec/template/spec/containers/0/image": "nginx:1.25",
			},
		},
		"a digest takes the place of a tag, and a tag that of a digest": {
			obj: deployment(), with: image(
				policyv1alpha1.ImageOverrider{Predicate: &policyv1alpha1.ImagePredicate{Path: "/spec/template/spec/containers/0/image"}, Component: "Tag", Operator: "replace", Value: ones},
				policyv1alpha1.ImageOverrider{Predicate: &policyv1alpha1.ImagePredicate{Path: "/spec/template/spec/containers/1/image"}, Component: "Tag", Operator: "replace", Value: "v2"},
			),
			want: map[string]any{
				"/spec/template/spec/containers/0/image": "nginx@" + ones, "/spec/template/spec/containers/1/image": "quay.io/side/car:v2",
			},
		},
		"what is no image afterwards is refused": {
			obj: deployment(), with: image(policyv1alpha1.ImageOverrider{Component: "Repository", Operator: "replace", Value: "UPPER"}),
			err: `override policy shop/op: overrideRules[0].imageOverrider[0] at containers[0].image: replace of Repository "UPPER" on "nginx:1.25" gives "UPPER:1.25", which is not an image`,
		},
		"a value that smuggles another part in is refused": {
			obj: deployment(), with: image(policyv1alpha1.ImageOverrider{Component: "Repository", Operator: "replace", Value: "evil.example/nginx:9@x"}),
			err: `override policy shop/op: overrideRules[0].imageOverrider[0] at containers[0].image: replace of Repository "evil.example/nginx:9@x" on "nginx:1.25" gives "evil.example/nginx:9@x:1.25", which is not an image`,
		},
		"kinds without containers need a predicate": {
			obj: configMap("a", "b"), with: image(policyv1alpha1.ImageOverrider{Component: "Tag", Operator: "remove"}),
			err: "override policy shop/op: overrideRules[0].imageOverrider[0]: ConfigMap: the kind has no containers that are known: a predicate path is needed",
		},
		"arguments are added and every equal one removed": {
			obj: deployment(), with: policyv1alpha1.Overriders{
				ArgsOverrider: []policyv1alpha1.CommandArgsOverrider{
					{ContainerName: "app", Operator: "remove", Value: []string{"-a"}},
					{ContainerName: "side", Operator: "add", Value: []string{"-s"}},
					{ContainerName: "nobody", Operator: "add", Value: []string{"-n"}},
				},
				CommandOverrider: []policyv1alpha1.CommandArgsOverrider{{ContainerName: "app", Operator: "remove", Value: []string{"x"}}},
			},
			want: map[string]any{
				"/spec/template/spec/containers/0/args": []any{"-b"}, "/spec/template/spec/containers/1/args": []any{"-s"},
				"/spec/template/spec/containers/0/command": nil,
			},
		},
		"labels and annotations are added, replaced where they are, and removed": {
			obj: deployment(), with: policyv1alpha1.Overriders{
				LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{
					{Operator: "replace", Value: map[string]string{"app": "new", "other": "never"}},
					{Operator: "add", Value: map[string]string{"zone": "a"}},
				},
				AnnotationsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{Operator: "remove", Value: map[string]string{"gone": ""}}},
			},
			want: map[string]any{"/metadata/labels": map[string]any{"app": "new", "zone": "a"}, "/metadata/annotations": nil},
		},
		"a patch sees what the other overriders did": {
			obj: deployment(), with: policyv1alpha1.Overriders{
				LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{Operator: "add", Value: map[string]string{"zone": "a"}}},
				Plaintext: []policyv1alpha1.PlaintextOverrider{
					{Path: "/metadata/labels/zone", Operator: "replace", Value: raw(`"b"`)},
					{Path: "/spec/replicas", Operator: "remove"},
					{Path: "/spec/template/spec/containers/-", Operator: "add", Value: raw(`{"name":"x","ports":[1]}`)},
				},
			},
			want: map[string]any{
				"/metadata/labels/zone": "b", "/spec/replicas": nil,
				"/spec/template/spec/containers/2": map[string]any{"name": "x", "ports": []any{int64(1)}},
			},
		},
		"a patch of what is not there names its path": {
			obj: deployment(), with: policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{
				{Path: "/spec/replicas", Operator: "replace", Value: raw("3")},
				{Path: "/spec/gone/deep", Operator: "replace", Value: raw("3")},
			}},
			err: "override policy shop/op: overrideRules[0].plaintext at /spec/gone/deep: replace operation does not apply: doc is missing path: /spec/gone/deep: missing value",
		},
		"a negative index is not there": {
			obj: deployment(), with: policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{
				{Path: "/spec/template/spec/containers/-1", Operator: "remove"},
			}},
			err: "override policy shop/op: overrideRules[0].plaintext at /spec/template/spec/containers/-1: error in remove for path: '/spec/template/spec/containers/-1': Unable to access invalid index: -1: invalid index referenced",
		},
		"a patch that would make it another object is refused": {
			obj: deployment(), with: policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{
				{Path: "/metadata/namespace", Operator: "replace", Value: raw(`"kube-system"`)},
			}},
			err: "override policy shop/op: overrideRules[0].plaintext: a patch must not change apiVersion, kind, name or namespace",
		},
		"an operator that would copy is refused": {
			obj: deployment(), with: policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "/spec", Operator: "copy"}}},
			err: `override policy shop/op: overrideRules[0].plaintext at /spec: operator "copy" is not one of those allowed here`,
		},
		"JSON in a string": {
			obj: configMap("a.json", `{"b":[{"c":1}],"z":"<&>"}`), with: policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{{
				FieldPath: "/data/a.json", JSON: []policyv1alpha1.JSONPatchOperation{{SubPath: "/b/0/c", Operator: "replace", Value: raw(`"d"`)}},
			}}},
			want: map[string]any{"/data/a.json": `{"b":[{"c":"d"}],"z":"<&>"}`},
		},
		"a key with a slash in it": {
			obj: configMap("dir/a.yaml", "b: 1\n"), with: policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{{
				FieldPath: "/data/dir~1a.yaml", YAML: []policyv1alpha1.YAMLPatchOperation{{SubPath: "/c", Operator: "add", Value: raw("[2]")}},
			}}},
			want: map[string]any{"/data/dir~1a.yaml": "b: 1\nc:\n- 2\n"},
		},
		"a string that is no YAML": {
			obj: configMap("a", "a: [\n"), with: policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{{
				FieldPath: "/data/a", YAML: []policyv1alpha1.YAMLPatchOperation{{SubPath: "/c", Operator: "add", Value: raw("2")}},
			}}},
			err: "override policy shop/op: overrideRules[0].fieldOverrider[0] at /data/a: value is no YAML: yaml: line 1: did not find expected node content",
		},
		"a string that is no JSON": {
			obj: configMap("a", "a"), with: policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{{
				FieldPath: "/data/a", JSON: []policyv1alpha1.JSONPatchOperation{{SubPath: "/c", Operator: "add", Value: raw("2")}},
			}}},
			err: "override policy shop/op: overrideRules[0].fieldOverrider[0] at /data/a: value is no JSON",
		},
		"a field that is no string": {
			obj: deployment(), with: policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{{
				FieldPath: "/spec/replicas", JSON: []policyv1alpha1.JSONPatchOperation{{SubPath: "/c", Operator: "add", Value: raw("2")}},
			}}},
			err: "override policy shop/op: overrideRules[0].fieldOverrider[0] at /spec/replicas: value is not a string",
		},
		"a path through what is no object": {
			obj: deployment(), with: policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{{
				FieldPath: "/spec/replicas/x", JSON: []policyv1alpha1.JSONPatchOperation{{SubPath: "/c", Operator: "add", Value: raw("2")}},
			}}},
			err: `override policy shop/op: overrideRules[0].fieldOverrider[0] at /spec/replicas/x: path does not exist: nothing at "x"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := override.Apply(tc.obj, east(), []policyv1alpha1.Override{policyOf(tc.with)})
			if got := message(err); got != tc.err {
				t.Fatalf("error\n got %s\nwant %s", got, tc.err)
			}
			for path, want := range tc.want {
				if diff := cmp.Diff(want, lookup(tc.obj.Object, path)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", path, diff)
				}
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func lookup(node any, path string) any {
	for part := range strings.SplitSeq(path[1:], "/") {
		part = strings.ReplaceAll(part, "~1", "/")
		switch parent := node.(type) {
		case map[string]any:
			node = parent[part]
		case []any:
			var i int
			if _, err := fmt.Sscan(part, &i); err != nil || i >= len(parent) {
				return nil
			}
			node = parent[i]
		default:
			return nil
		}
	}
	return node
}

func TestLimits(t *testing.T) {
	big := strings.Repeat("x", override.MaxBytes+1)
	many := make([]policyv1alpha1.PlaintextOverrider, override.MaxOperations+1)
	for i := range many {
		many[i] = policyv1alpha1.PlaintextOverrider{Path: "/spec/a", Operator: "add", Value: raw("1")}
	}
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'l'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	add := []policyv1alpha1.YAMLPatchOperation{{SubPath: "/z", Operator: "add", Value: raw("2")}}
	cases := map[string]struct {
		obj  *unstructured.Unstructured
		with policyv1alpha1.Overriders
		want error
	}{
		"too many operations": {deployment(), policyv1alpha1.Overriders{Plaintext: many}, override.ErrTooMany},
		"a field that is too large": {
			configMap("a", big), policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{{FieldPath: "/data/a", YAML: add}}}, override.ErrTooLarge,
		},
		"a result that is too large": {
			deployment(), policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "/spec/a", Operator: "add", Value: raw(`"` + big + `"`)}}}, override.ErrTooLarge,
		},
		"YAML whose aliases blow up": {
			configMap("a", bomb), policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{{FieldPath: "/data/a", YAML: add}}}, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := override.Apply(tc.obj, east(), []policyv1alpha1.Override{policyOf(tc.with)})
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("error = %.200v, want %v", err, tc.want)
			}
		})
	}
}

func TestMatching(t *testing.T) {
	label := func(v string) policyv1alpha1.Overriders {
		return policyv1alpha1.Overriders{LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{Operator: "add", Value: map[string]string{"by": v}}}}
	}
	named := []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}
	op := func(ns, name string, sel []policyv1alpha1.ResourceSelector, only ...string) policyv1alpha1.Override {
		spec := policyv1alpha1.OverrideSpec{ResourceSelectors: sel, OverrideRules: []policyv1alpha1.RuleWithCluster{
			{TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: only}, Overriders: label(name)},
		}}
		meta := metav1.ObjectMeta{Namespace: ns, Name: name}
		if ns == "" {
			return &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: meta, Spec: spec}
		}
		return &policyv1alpha1.OverridePolicy{ObjectMeta: meta, Spec: spec}
	}
	legacy := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "legacy"},
		Spec:       policyv1alpha1.OverrideSpec{Overriders: label("legacy")},
	}
	cases := map[string]struct {
		overrides []policyv1alpha1.Override
		wantBy    any
		// wantApplied are the names in both records.
		wantApplied []string
	}{
		"none": {nil, nil, nil},
		"the namespace beats the fleet, whatever the names and selectors": {
			[]policyv1alpha1.Override{op("shop", "a", nil), op("", "z", named)}, "a", []string{"cluster z", "a"},
		},
		"the more specific one wins":       {[]policyv1alpha1.Override{op("shop", "a", named), op("shop", "z", nil)}, "a", []string{"a", "z"}},
		"then the later name":              {[]policyv1alpha1.Override{op("shop", "z", nil), op("shop", "a", nil)}, "z", []string{"a", "z"}},
		"another namespace does not count": {[]policyv1alpha1.Override{op("bank", "a", nil)}, nil, nil},
		"another cluster does not count":   {[]policyv1alpha1.Override{op("shop", "a", nil, "west")}, nil, nil},
		"the deprecated fields count":      {[]policyv1alpha1.Override{legacy}, "legacy", []string{"legacy"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := deployment()
			applied, err := override.Apply(obj, east(), tc.overrides)
			if err != nil {
				t.Fatal(err)
			}
			if got := lookup(obj.Object, "/metadata/labels/by"); got != tc.wantBy {
				t.Errorf("the last one was %v, want %v", got, tc.wantBy)
			}
			if diff := cmp.Diff(tc.wantApplied, recorded(t, applied)); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
			for _, o := range tc.overrides {
				if !override.Selects(o, selector.ResourceOf(obj)) && o.GetNamespace() != "bank" {
					t.Errorf("%s should select the Deployment", o.GetName())
				}
			}
		})
	}
}

// recorded reads the names back from the annotations.
func recorded(t *testing.T, a override.Applied) []string {
	t.Helper()
	var out []string
	for _, key := range []string{policyv1alpha1.AppliedClusterOverrides, policyv1alpha1.AppliedOverrides} {
		text, ok := a.Annotations()[key]
		if !ok {
			continue
		}
		var items []override.Item
		if err := json.Unmarshal([]byte(text), &items); err != nil {
			t.Fatal(err)
		}
		for _, i := range items {
			if key == policyv1alpha1.AppliedClusterOverrides {
				i.PolicyName = "cluster " + i.PolicyName
			}
			out = append(out, i.PolicyName)
		}
	}
	return out
}

// FuzzPatch: no patch crashes, and one that is applied leaves the object's
// identity and can be encoded again.
func FuzzPatch(f *testing.F) {
	f.Add("/spec/replicas", "replace", "3", "/data", "add")
	f.Add("/spec/template/spec/containers/-1", "remove", "", "/x/y", "remove")
	f.Add("", "replace", "null", "/", "add")
	f.Add("/spec/~2", "add", "{", "//", "replace")
	f.Add("/spec", "add", `{"a":[1,{"b":null}]}`, "/spec/a/1/b", "add")
	f.Fuzz(func(t *testing.T, path, op, value, secondPath, secondOp string) {
		obj := deployment()
		_, err := override.Apply(obj, east(), []policyv1alpha1.Override{policyOf(policyv1alpha1.Overriders{
			Plaintext: []policyv1alpha1.PlaintextOverrider{
				{Path: path, Operator: policyv1alpha1.OverriderOperator(op), Value: raw(value)},
				{Path: secondPath, Operator: policyv1alpha1.OverriderOperator(secondOp), Value: raw(value)},
			},
		})})
		var typed *override.Error
		if err != nil && !errors.As(err, &typed) {
			t.Fatalf("error %v has no place", err)
		}
		if err != nil {
			return
		}
		if obj.GetName() != "web" || obj.GetKind() != "Deployment" || obj.GetNamespace() != "shop" {
			t.Fatalf("became another object: %v", obj)
		}
		if _, err := json.Marshal(obj.Object); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzField: nothing in a string crashes the field overrider.
func FuzzField(f *testing.F) {
	f.Add("a: 1\n", "/a", "2", true)
	f.Add(`{"a":[1]}`, "/a/0", `"x"`, false)
	f.Add("a: &a [*a]", "/a", "2", true)
	f.Add("[]", "/-", "null", false)
	f.Fuzz(func(t *testing.T, text, path, value string, isYAML bool) {
		o := policyv1alpha1.FieldOverrider{FieldPath: "/data/k"}
		if isYAML {
			o.YAML = []policyv1alpha1.YAMLPatchOperation{{SubPath: path, Operator: "add", Value: raw(value)}}
		} else {
			o.JSON = []policyv1alpha1.JSONPatchOperation{{SubPath: path, Operator: "add", Value: raw(value)}}
		}
		obj := configMap("k", text)
		_, err := override.Apply(obj, east(), []policyv1alpha1.Override{policyOf(policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{o}})})
		if _, ok := lookup(obj.Object, "/data/k").(string); err == nil && !ok {
			t.Fatalf("is no string any more: %v", obj)
		}
	})
}

// FuzzImage: what is parsed is put together again as it was.
func FuzzImage(f *testing.F) {
	for _, s := range []string{
		"nginx", "nginx:1", "a/b/c:1", "localhost/x", "localhost:5000/x:y", "r.io/a@sha256:" + strings.Repeat("a", 64),
		"r.io:1/a:t@sha256:" + strings.Repeat("b", 64), "UPPER", "a:b:c", "@", ":", "a//b", "[::1]:5000/x", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		img, err := override.ParseImage(s)
		if err != nil {
			return
		}
		if got := img.String(); got != s {
			t.Errorf("%q came back as %q", s, got)
		}
	})
}
