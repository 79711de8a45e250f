package override_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla-io/flotilla/policies/override"
)

var (
	zeros = "sha256:" + strings.Repeat("0", 64)
	ones  = "sha256:" + strings.Repeat("1", 64)
)

// TestImage changes one component of one image.
func TestImage(t *testing.T) {
	const (
		at = "imageOverrider[0] at /spec/template/spec/containers/0/image: "
		no = ", which is no image: correct the value"
	)
	cases := map[string]struct {
		image, component, operator, value string
		want, err                         string
	}{
		"a registry is put before a bare name":                  {"nginx:1.25", "Registry", "replace", "r.example", "r.example/nginx:1.25", ""},
		"a registry takes the place of another":                 {"quay.io/a/b:1", "Registry", "replace", "r.example", "r.example/a/b:1", ""},
		"a registry may have a port":                            {"nginx", "Registry", "replace", "r.example:5000", "r.example:5000/nginx", ""},
		"the port of a registry is no tag":                      {"r.example:5000/nginx", "Tag", "replace", "2", "r.example:5000/nginx:2", ""},
		"a registry with a port is replaced whole":              {"r.example:5000/a/b:1", "Registry", "replace", "quay.io", "quay.io/a/b:1", ""},
		"localhost is a registry":                               {"localhost/a:1", "Registry", "replace", "quay.io", "quay.io/a:1", ""},
		"localhost with a port is a registry":                   {"localhost:5000/a:1", "Registry", "remove", "", "a:1", ""},
		"a first segment without a dot or a colon is none":      {"library/nginx:1", "Registry", "replace", "r.example", "r.example/library/nginx:1", ""},
		"an address is a registry":                              {"10.0.0.1:5000/a", "Registry", "remove", "", "a", ""},
		"an IPv6 address is a registry":                         {"[::1]:5000/a:1", "Registry", "replace", "r.example", "r.example/a:1", ""},
		"a registry may come with a path of mirrors":            {"nginx:1.25", "Registry", "replace", "r.example/mirror", "r.example/mirror/nginx:1.25", ""},
		"add to a registry appends to it":                       {"r.example/a:1", "Registry", "add", ".test:5000", "r.example.test:5000/a:1", ""},
		"add to no registry sets it":                            {"a:1", "Registry", "add", "r.example", "r.example/a:1", ""},
		"a registry is removed":                                 {"quay.io/a/b:1", "Registry", "remove", "", "a/b:1", ""},
		"removing a registry that is not there changes nothing": {"a/b:1", "Registry", "remove", "", "a/b:1", ""},
		"a registry leaves tag and digest":                      {"a:1@" + zeros, "Registry", "replace", "r.example", "r.example/a:1@" + zeros, ""},

		"a repository takes the place of another":            {"r.example/a/b:1", "Repository", "replace", "c", "r.example/c:1", ""},
		"a repository of several segments":                   {"a:1", "Repository", "replace", "b/c/d", "b/c/d:1", ""},
		"a repository may come with a registry":              {"nginx:1", "Repository", "replace", "quay.io/team/nginx", "quay.io/team/nginx:1", ""},
		"add to a repository appends to it":                  {"r.example/a:1", "Repository", "add", "-debug", "r.example/a-debug:1", ""},
		"an image cannot do without a repository":            {"a:1", "Repository", "remove", "", "", at + `remove of Repository "" on "a:1" gives ":1"` + no},
		"a repository in capitals is no image":               {"nginx:1.25", "Repository", "replace", "UPPER", "", at + `replace of Repository "UPPER" on "nginx:1.25" gives "UPPER:1.25"` + no},
		"a repository with a version beside one is no image": {"nginx:1.25", "Repository", "replace", "evil.example/nginx:9@x", "", at + `replace of Repository "evil.example/nginx:9@x" on "nginx:1.25" gives "evil.example/nginx:9@x:1.25"` + no},

		"a tag takes the place of another":                  {"nginx:1.25", "Tag", "replace", "1.26", "nginx:1.26", ""},
		"a tag is set where there is none":                  {"nginx", "Tag", "replace", "1.26", "nginx:1.26", ""},
		"add to a tag appends to it":                        {"nginx:1.25", "Tag", "add", "-slim", "nginx:1.25-slim", ""},
		"add to no tag sets it":                             {"nginx", "Tag", "add", "1", "nginx:1", ""},
		"a tag is removed":                                  {"nginx:1.25", "Tag", "remove", "", "nginx", ""},
		"a digest is removed like a tag":                    {"nginx@" + zeros, "Tag", "remove", "", "nginx", ""},
		"a digest takes the place of a tag":                 {"nginx:1.25", "Tag", "replace", ones, "nginx@" + ones, ""},
		"a tag takes the place of a digest":                 {"quay.io/a/b@" + zeros, "Tag", "replace", "v2", "quay.io/a/b:v2", ""},
		"a digest takes the place of a digest":              {"nginx@" + zeros, "Tag", "replace", ones, "nginx@" + ones, ""},
		"a tag takes the place of a tag with a digest":      {"nginx:1@" + zeros, "Tag", "replace", "2", "nginx:2", ""},
		"a digest takes the place of a tag with a digest":   {"nginx:1@" + zeros, "Tag", "replace", ones, "nginx@" + ones, ""},
		"add to a tag drops the digest beside it":           {"nginx:1@" + zeros, "Tag", "add", "-slim", "nginx:1-slim", ""},
		"a tag and a digest are removed together":           {"nginx:1@" + zeros, "Tag", "remove", "", "nginx", ""},
		"nothing can be added to a digest":                  {"a@" + zeros, "Tag", "add", "x", "", at + `add of Tag "x" on "a@` + zeros + `" gives "a@` + zeros + `x"` + no},
		"a tag cannot begin with a dash":                    {"nginx", "Tag", "add", "-slim", "", at + `add of Tag "-slim" on "nginx" gives "nginx:-slim"` + no},
		"a tag cannot turn the name into a registry":        {"nginx:1", "Tag", "replace", "5000/evil", "", at + `replace of Tag "5000/evil" on "nginx:1" gives "nginx:5000/evil"` + no},
		"a tag of more than 128 letters is no image":        {"nginx:1", "Tag", "replace", strings.Repeat("a", 129), "", at + `replace of Tag "` + strings.Repeat("a", 129) + `" on "nginx:1" gives "nginx:` + strings.Repeat("a", 129) + `"` + no},
		"a digest that is cut short is no image":            {"nginx:1", "Tag", "replace", "sha256:00", "", at + `replace of Tag "sha256:00" on "nginx:1" gives "nginx@sha256:00"` + no},
		"an image that does not parse is left to its owner": {"UPPER:1", "Tag", "replace", "2", "", at + `image "UPPER:1": invalid reference format: repository name (library/UPPER) must be lowercase: correct the template`},
		"an empty image does not parse":                     {"", "Tag", "replace", "2", "", at + `image "": invalid reference format: correct the template`},
		"a value beyond all images":                         {"a", "Registry", "replace", strings.Repeat("a", 4097), "", at + "image of more than 4096 bytes"},
		"a component that there is not":                     {"a", "Host", "replace", "b", "", at + `component "Host" is not Registry, Repository or Tag`},
		"an operator that there is not":                     {"a", "Tag", "copy", "b", "", at + `operator "copy" is not one of those allowed here`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := change{
				obj:  deployment(),
				with: fmt.Sprintf("imageOverrider: [{component: %s, operator: %s, value: %q, predicate: {path: /spec/template/spec/containers/0/image}}]", tc.component, tc.operator, tc.value),
				err:  tc.err,
			}
			_ = changeAt(c.obj.Object, "/spec/template/spec/containers/0/image", tc.image)
			if tc.err == "" {
				c.want = map[string]any{"/spec/template/spec/containers/0/image": tc.want}
			}
			c.run(t)
		})
	}
}

// changeAt sets a string of an object.
func changeAt(root map[string]any, path, text string) error {
	cut := strings.LastIndexByte(path, '/')
	parent, ok := lookup(root, path[:cut]).(map[string]any)
	if !ok {
		return fmt.Errorf("nothing at %s", path)
	}
	parent[path[cut+1:]] = text
	return nil
}

// TestImagesOfKinds says which images of which kinds a rule reaches.
func TestImagesOfKinds(t *testing.T) {
	cases := map[string]struct {
		kind, spec string
		predicate  string
		want       string // the spec after all tags became 2
		err        string
	}{
		"a Pod: all containers, but not the init containers": {kind: "Pod", spec: "{" + pods + "}", want: "{" + tagged("a", "c") + "}"},
		"a Deployment":  {kind: "Deployment", spec: "{template: {spec: {" + pods + "}}}", want: "{template: {spec: {" + tagged("a", "c") + "}}}"},
		"a ReplicaSet":  {kind: "ReplicaSet", spec: "{template: {spec: {" + pods + "}}}", want: "{template: {spec: {" + tagged("a", "c") + "}}}"},
		"a DaemonSet":   {kind: "DaemonSet", spec: "{template: {spec: {" + pods + "}}}", want: "{template: {spec: {" + tagged("a", "c") + "}}}"},
		"a StatefulSet": {kind: "StatefulSet", spec: "{template: {spec: {" + pods + "}}}", want: "{template: {spec: {" + tagged("a", "c") + "}}}"},
		"a Job":         {kind: "Job", spec: "{template: {spec: {" + pods + "}}}", want: "{template: {spec: {" + tagged("a", "c") + "}}}"},
		"a CronJob is left alone without a predicate": {kind: "CronJob", spec: "{jobTemplate: {spec: {template: {spec: {" + pods + "}}}}}", want: "{jobTemplate: {spec: {template: {spec: {" + pods + "}}}}}"},
		"a CronJob is reached with a predicate": {
			kind: "CronJob", spec: "{jobTemplate: {spec: {template: {spec: {" + pods + "}}}}}", predicate: "/spec/jobTemplate/spec/template/spec/containers/2/image",
			want: "{jobTemplate: {spec: {template: {spec: {" + tagged("c") + "}}}}}",
		},
		"an init container is reached with a predicate":         {kind: "Pod", spec: "{" + pods + "}", predicate: "/spec/initContainers/0/image", want: "{" + tagged("i") + "}"},
		"a kind of one's own is left alone without a predicate": {kind: "Widget", spec: "{image: 'w:1'}", want: "{image: 'w:1'}"},
		"a kind of one's own is reached with a predicate":       {kind: "Widget", spec: "{image: 'w:1'}", predicate: "/spec/image", want: "{image: 'w:2'}"},
		"a Deployment of another making has other places":       {kind: "Deployment", spec: "{pods: 3}", want: "{pods: 3}"},
		"containers that are no list are not looked into":       {kind: "Pod", spec: "{containers: all}", want: "{containers: all}"},
		"a predicate that leads nowhere": {
			kind: "Widget", spec: "{}", predicate: "/spec/image",
			err: `imageOverrider[0] at /spec/image: path does not exist: there is no "image": narrow the rule to what has it`,
		},
		"a predicate that leads to no string": {
			kind: "Widget", spec: "{image: {name: w}}", predicate: "/spec/image",
			err: "imageOverrider[0] at /spec/image: value is not a string: use plaintext for other values",
		},
		"a predicate must not rename the object": {
			kind: "Widget", spec: "{}", predicate: "/metadata/name",
			err: "imageOverrider: an override must not change apiVersion, kind, name or namespace: propagate another template instead",
		},
		"a predicate is a JSON pointer": {
			kind: "Widget", spec: "{}", predicate: "spec.image",
			err: `imageOverrider[0] at spec.image: path is not a JSON pointer: "spec.image" does not start with a slash`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			with := "imageOverrider: [{component: Tag, operator: replace, value: '2'}]"
			if tc.predicate != "" {
				with = strings.Replace(with, "}]", ", predicate: {path: "+tc.predicate+"}}]", 1)
			}
			c := change{obj: of("{apiVersion: x/v1, kind: " + tc.kind + ", metadata: {name: w, namespace: shop}, spec: " + tc.spec + "}"), with: with, err: tc.err}
			if tc.err == "" {
				c.want = map[string]any{"/spec": of("{kind: x, spec: " + tc.want + "}").Object["spec"]}
			}
			c.run(t)
		})
	}
}

// pods is a pod spec whose images have the tag 1.
const pods = "containers: [{name: a, image: 'a:1'}, {name: b}, {name: c, image: 'c:1'}], initContainers: [{name: i, image: 'i:1'}], ephemeralContainers: [{name: e, image: 'e:1'}]"

// tagged returns pods with the tag 2 of the images named.
func tagged(names ...string) string {
	out := pods
	for _, n := range names {
		out = strings.Replace(out, "'"+n+":1'", "'"+n+":2'", 1)
	}
	return out
}

// FuzzImage: what is parsed is put together again as it was.
func FuzzImage(f *testing.F) {
	for _, s := range []string{
		"nginx", "nginx:1", "a/b/c:1", "localhost/x", "localhost:5000/x:y", "r.io/a@" + zeros,
		"r.io:1/a:t@" + ones, "UPPER", "a:b:c", "@", ":", "a//b", "[::1]:5000/x", "",
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
