package ownership_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/internal/ownership"
)

// live is a Deployment as a member answers with it.
const live = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  resourceVersion: "7"
  generation: 3
  labels: {app: web, theirs: one}
  finalizers: [ours/x, theirs/y]
  managedFields:
  - manager: other
    operation: Update
    fieldsV1: {"f:metadata": {"f:labels": {"f:theirs": {}}}}
  - manager: flotilla
    operation: Apply
    fieldsV1:
      f:metadata:
        f:labels: {"f:app": {}}
        f:finalizers: {"v:\"ours/x\"": {}}
      f:spec:
        f:replicas: {}
        f:selector: {}
        f:template:
          f:spec:
            f:containers:
              k:{"name":"web"}:
                .: {}
                f:name: {}
                f:image: {}
                f:ports:
                  k:{"containerPort":80,"protocol":"TCP"}:
                    .: {}
                    f:containerPort: {}
  - manager: flotilla
    operation: Update
    subresource: status
    fieldsV1: {"f:status": {"f:replicas": {}}}
spec:
  replicas: 2
  paused: false
  selector: {matchLabels: {app: web}}
  template:
    spec:
      containers:
      - {name: sidecar, image: "proxy:1"}
      - name: web
        image: nginx:1
        ports: [{containerPort: 80, protocol: TCP, name: http}]
status: {replicas: 2}
`

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestHash(t *testing.T) {
	cases := map[string]struct {
		replace, by string
		same        bool
	}{
		"another resource version":                 {`"7"`, `"8"`, true},
		"a label of others":                        {"theirs: one", "theirs: two", true},
		"a finalizer of others":                    {"theirs/y", "theirs/z", true},
		"a field that nobody applied":              {"paused: false", "paused: true", true},
		"the status":                               {"status: {replicas: 2}", "status: {replicas: 9}", true},
		"a container of others":                    {"proxy:1", "proxy:2", true},
		"a field of others in a container of ours": {"name: http", "name: web", true},
		"a label of ours":                          {"{app: web, theirs", "{app: api, theirs", false},
		"a label of ours that is gone":             {"{app: web, theirs", "{theirs", false},
		"a finalizer of ours that is gone":         {"[ours/x, theirs/y]", "[theirs/y]", false},
		"a number of ours":                         {"replicas: 2\n  paused", "replicas: 3\n  paused", false},
		"something below an atomic field of ours":  {"{matchLabels: {app: web}}", "{matchLabels: {app: api}}", false},
		"the image of our container":               {"nginx:1", "nginx:2", false},
		"the key of an item of ours":               {"containerPort: 80, protocol: TCP, name", "containerPort: 81, protocol: TCP, name", false},
		"the loss of a field to somebody else":     {"        f:replicas: {}\n", "", false},
		"the loss of all fields":                   {"manager: flotilla\n    operation: Apply", "manager: other\n    operation: Apply", false},
	}
	want, err := ownership.Hash(object(t, live))
	if err != nil || want == "" {
		t.Fatalf("Hash = %q, %v", want, err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(live, tc.replace) {
				t.Fatalf("%q is not in the object", tc.replace)
			}
			got, err := ownership.Hash(object(t, strings.Replace(live, tc.replace, tc.by, 1)))
			if err != nil {
				t.Fatal(err)
			}
			if (got == want) != tc.same {
				t.Errorf("hash %q, was %q: same should be %t", got, want, tc.same)
			}
		})
	}
}

func TestHashOfNothingIsEmpty(t *testing.T) {
	got, err := ownership.Hash(object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}}"))
	if err != nil || got != "" {
		t.Errorf("Hash = %q, %v, want nothing", got, err)
	}
}

func FuzzHash(f *testing.F) {
	data, err := yaml.YAMLToJSON([]byte(live))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"kind":"X","metadata":{"managedFields":[{"manager":"flotilla","operation":"Apply","fieldsV1":{"k:{}":{},"v:[":{},"i:-1":{},"i:x":{},"f":{},"q:z":{}}}]}}`))
	f.Add([]byte(`{"kind":"X","metadata":{"managedFields":[7,{"manager":"flotilla","operation":"Apply","fieldsV1":{"f:metadata":{"k:{\"a\":[]}":{}}}}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		obj := &unstructured.Unstructured{}
		if json.Unmarshal(data, &obj.Object) != nil || obj.Object == nil {
			return
		}
		first, err := ownership.Hash(obj)
		again, errAgain := ownership.Hash(obj)
		if first != again || (err == nil) != (errAgain == nil) {
			t.Errorf("Hash = %q, %v and then %q, %v", first, err, again, errAgain)
		}
	})
}

func TestRetained(t *testing.T) {
	cases := map[string]struct{ desired, retained, want string }{
		"a field that was left out and is ours keeps the member's value": {
			desired:  "{spec: {replicas: 5, paused: true}}",
			retained: "{spec: {paused: true}}",
			want:     "{spec: {replicas: 2, paused: true}}",
		},
		"a field that was left out and is not ours stays out": {
			desired:  "{spec: {replicas: 2, paused: true}}",
			retained: "{spec: {replicas: 2}}",
			want:     "{spec: {replicas: 2}}",
		},
		"what was never wanted stays out": {
			desired:  "{spec: {paused: true}}",
			retained: "{spec: {paused: true}}",
			want:     "{spec: {paused: true}}",
		},
		"what was changed stays as it was changed": {
			desired:  "{spec: {replicas: 5}}",
			retained: "{spec: {replicas: 4}}",
			want:     "{spec: {replicas: 4}}",
		},
		"a field taken over that is not ours is left out": {
			desired:  "{spec: {replicas: 5, paused: true}}",
			retained: "{spec: {replicas: 5, paused: false}}",
			want:     "{spec: {replicas: 5}}",
		},
		"a field taken over that is ours keeps the member's value": {
			desired:  "{spec: {replicas: 5}}",
			retained: "{spec: {replicas: 2}}",
			want:     "{spec: {replicas: 2}}",
		},
		"a field that nobody wanted is left out, the object around it too": {
			desired:  "{metadata: {labels: {app: web}}}",
			retained: "{metadata: {labels: {app: web, theirs: one}}, spec: {paused: false}}",
			want:     "{metadata: {labels: {app: web}}}",
		},
		"a container of others is left out, and what they set in ours": {
			desired:  `{spec: {template: {spec: {containers: [{name: web, image: "nginx:2"}]}}}}`,
			retained: `{spec: {template: {spec: {containers: [{name: sidecar, image: "proxy:1"}, {name: web, image: "nginx:2", ports: [{containerPort: 80, protocol: TCP, name: http}]}]}}}}`,
			want:     `{spec: {template: {spec: {containers: [{name: web, image: "nginx:2", ports: [{containerPort: 80, protocol: TCP}]}]}}}}`,
		},
		"a container of ours that was left out keeps the member's value": {
			desired:  `{spec: {template: {spec: {containers: [{name: web, image: "nginx:2"}]}}}}`,
			retained: `{spec: {template: {spec: {containers: []}}}}`,
			want:     `{spec: {template: {spec: {containers: [{name: web, image: "nginx:1", ports: [{containerPort: 80, protocol: TCP}]}]}}}}`,
		},
		"a finalizer of others is left out": {
			desired:  "{metadata: {finalizers: [ours/x]}}",
			retained: "{metadata: {finalizers: [ours/x, theirs/y]}}",
			want:     "{metadata: {finalizers: [ours/x]}}",
		},
		"an atomic field is one": {
			desired:  "{spec: {selector: {matchLabels: {app: api}}}}",
			retained: "{spec: {selector: {matchLabels: {app: web}}}}",
			want:     "{spec: {selector: {matchLabels: {app: web}}}}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			parse := func(text string) *unstructured.Unstructured {
				out := object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}")
				for key, value := range object(t, "{kind: Deployment, "+strings.TrimPrefix(text, "{")).Object {
					if fields, ok := value.(map[string]any); ok && key == "metadata" {
						fields["name"], fields["namespace"] = "web", "shop"
					}
					out.Object[key] = value
				}
				out.SetNamespace("shop")
				return out
			}
			desired := parse(tc.desired)
			got, err := ownership.Retained(desired, parse(tc.retained), object(t, live))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parse(tc.want).Object, got.Object); diff != "" {
				t.Errorf("Retained (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(parse(tc.desired).Object, desired.Object); diff != "" {
				t.Errorf("changed what was desired (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRetainedOfTheWholeObject is what scripts do: they return what they were
// given of the member, with the marks gone, or another object.
func TestRetainedOfTheWholeObject(t *testing.T) {
	desired := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, labels: {app: web, karmada.io/managed: "true"}}, spec: {replicas: 5}}`)
	got, err := ownership.Retained(desired, object(t, live), object(t, live))
	if err != nil {
		t.Fatal(err)
	}
	want := object(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web, karmada.io/managed: "true"}, finalizers: [ours/x]}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {spec: {containers: [{name: web, image: "nginx:1", ports: [{containerPort: 80, protocol: TCP}]}]}}
`)
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("Retained (-want +got):\n%s", diff)
	}
	other := desired.DeepCopy()
	other.SetName("api")
	if _, err := ownership.Retained(desired, other, object(t, live)); !errors.Is(err, ownership.ErrOtherObject) {
		t.Errorf("another object: %v, want %v", err, ownership.ErrOtherObject)
	}
	if _, err := ownership.Retained(desired, nil, object(t, live)); !errors.Is(err, ownership.ErrOtherObject) {
		t.Errorf("no object: %v, want %v", err, ownership.ErrOtherObject)
	}
}
