package ownership_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-io/flotilla/internal/ownership"
)

// applied is what was applied to the live object.
const applied = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels: {app: web}
  finalizers: [ours/x]
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {spec: {containers: [{name: web, image: "nginx:1", ports: [{containerPort: 80, protocol: TCP}]}]}}
`

// edited returns the live object after somebody changed it, as servers note it:
// what is theirs is ours no longer.
func edited(t *testing.T, lost, was, is, fields string) *unstructured.Unstructured {
	t.Helper()
	text := live
	for _, change := range [][2]string{{lost, ""}, {was, is}} {
		if !strings.Contains(text, change[0]) {
			t.Fatalf("%q is not in the object", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	text = strings.Replace(text, "  managedFields:\n", "  managedFields:\n  - {manager: kubectl-edit, operation: Update, time: \"2026-11-21T04:00:00Z\", fieldsV1: "+fields+"}\n", 1)
	return object(t, text)
}

func TestChanges(t *testing.T) {
	cases := map[string]struct {
		live *unstructured.Unstructured
		want string
	}{
		"nothing": {object(t, live), ""},
		"a number": {
			edited(t, "        f:replicas: {}\n", "replicas: 2\n  paused", "replicas: 9\n  paused", `{"f:spec": {"f:replicas": {}}}`),
			"spec.replicas changed by kubectl-edit at 2026-11-21T04:00:00Z",
		},
		"an image": {
			edited(t, "                f:image: {}\n", "nginx:1", "nginx:2", `{"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {"f:image": {}}}}}}}`),
			"spec.template.spec.containers[web].image changed by kubectl-edit at 2026-11-21T04:00:00Z",
		},
		"a field that was taken over as it was": {
			edited(t, "        f:replicas: {}\n", "replicas: 2\n  paused", "replicas: 2\n  paused", `{"f:spec": {"f:replicas": {}}}`), "",
		},
		"a field of theirs": {
			edited(t, "", "theirs: one", "theirs: two", `{"f:metadata": {"f:labels": {"f:theirs": {}}}}`), "",
		},
		"a label that is gone": {
			edited(t, "        f:labels: {\"f:app\": {}}\n", "{app: web, theirs", "{theirs", `{"f:spec": {"f:paused": {}}}`),
			"metadata.labels.app removed by kubectl-edit at 2026-11-21T04:00:00Z",
		},
		"a container that is gone": {
			edited(t, "", "- name: web\n        image: nginx:1", "- name: api\n        image: nginx:1", `{"f:spec": {"f:paused": {}}}`),
			"spec.template.spec.containers[web] removed by kubectl-edit at 2026-11-21T04:00:00Z",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ownership.Describe(ownership.Changes(object(t, applied), tc.live))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDescribeIsBounded(t *testing.T) {
	many := make([]string, 1000)
	for i := range many {
		many[i] = strings.Repeat("ä", 300)
	}
	got := ownership.Describe([]ownership.Change{{Manager: "m", Fields: many}, {Removed: many}})
	if len(got) > 1024 || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestAdopt(t *testing.T) {
	desired := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {app: web}}, spec: {replicas: 2, template: {spec: {containers: [{name: web, image: "nginx:1", ports: [{containerPort: 80}]}]}}}}`
	entry := func(manager, operation, more, fields string) string {
		return `{manager: ` + manager + `, operation: ` + operation + `, apiVersion: apps/v1` + more + `, fieldsV1: ` + fields + `}`
	}
	const theirs = `{"f:metadata": {"f:annotations": {"f:last": {}}}}`
	cases := map[string]struct {
		entries []string
		left    []string // without ours; nil: there is nothing to take
		taken   string
	}{
		"nobody set what we want": {entries: []string{entry("kubectl", "Update", "", theirs)}},
		"we have applied it before": {entries: []string{
			entry("flotilla", "Apply", "", `{"f:spec": {"f:replicas": {}}}`), entry("kubectl-client-side-apply", "Update", "", `{"f:spec": {"f:replicas": {}}}`),
		}},
		"client-side apply": {
			entries: []string{entry("kubectl-client-side-apply", "Update", "", `{"f:metadata": {"f:annotations": {".": {}, "f:last": {}}, "f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:replicas": {}, "f:paused": {}}}`)},
			left:    []string{entry("kubectl-client-side-apply", "Update", "", `{"f:metadata": {"f:annotations": {".": {}, "f:last": {}}}, "f:spec": {"f:paused": {}}}`)},
			taken:   `{"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:replicas": {}}}`,
		},
		"Helm, and what has a default": {
			entries: []string{entry("helm", "Update", "", `{"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}, "f:imagePullPolicy": {}, "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}}}}}}}}}`)},
			left:    []string{entry("helm", "Update", "", `{"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {"f:imagePullPolicy": {}, "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {"f:protocol": {}}}}}}}}}`)},
			taken:   `{"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}, "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}}}}}}`,
		},
		"what was an object and is to be a value": {
			entries: []string{entry("kubectl", "Update", "", `{"f:spec": {"f:replicas": {"f:least": {}}, "f:paused": {".": {}, "f:since": {}}}}`)},
			left:    []string{entry("kubectl", "Update", "", `{"f:spec": {"f:paused": {".": {}, "f:since": {}}}}`)},
			taken:   `{"f:spec": {"f:replicas": {".": {}, "f:least": {}}}}`,
		},
		"one item of several names": {
			entries: []string{entry("kubectl", "Update", "", `{"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {"f:image": {}}, "k:{\"name\": \"web\"}": {"f:image": {}, "f:tty": {}}}}}}}`)},
			left:    []string{entry("kubectl", "Update", "", `{"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {"f:tty": {}}}}}}}`)},
			taken:   `{"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {"f:image": {}}}}}}}`,
		},
		"several of them": {
			entries: []string{entry("kubectl-create", "Update", "", `{"f:spec": {"f:replicas": {}}}`), entry("kustomize-controller", "Apply", "", `{"f:metadata": {"f:labels": {"f:app": {}}}}`)},
			left:    []string{},
			taken:   `{"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:replicas": {}}}`,
		},
		"not the cluster itself, an autoscaler, or who applies for reasons of their own": {entries: []string{
			entry("kube-controller-manager", "Update", "", `{"f:spec": {"f:replicas": {}}}`),
			entry("kube-controller-manager", "Update", ", subresource: scale", `{"f:spec": {"f:replicas": {}}}`),
			entry("some-operator", "Apply", "", `{"f:spec": {"f:replicas": {}}}`),
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stands := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, uid: u, resourceVersion: "7", managedFields: [`+strings.Join(tc.entries, ", ")+`]}}`)
			patch, err := ownership.Adopt(object(t, desired), stands)
			if err != nil {
				t.Fatal(err)
			}
			if tc.left == nil {
				if patch != nil {
					t.Errorf("patch = %s, want none", patch)
				}
				return
			}
			var got map[string]any
			if err := json.Unmarshal(patch, &got); err != nil {
				t.Fatal(err)
			}
			ours := entry("flotilla", "Apply", ", fieldsType: FieldsV1", tc.taken)
			want := object(t, `{kind: X, metadata: {uid: u, resourceVersion: "7", managedFields: [`+strings.Join(append(tc.left, ours), ", ")+`]}}`)
			delete(want.Object, "kind")
			if diff := cmp.Diff(want.Object, got); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDisplace: what somebody made of an item of ours by changing its key goes, and nothing else of his.
func TestDisplace(t *testing.T) {
	const desired = `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{name: http, port: 80}, {name: admin, port: 90, nodePort: 30090}]}}`
	const alone = `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}`
	port := func(number int) string {
		return fmt.Sprintf(`"k:{\"port\":%d,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}}`, number)
	}
	ports := func(of ...string) string { return `{"f:spec": {"f:ports": {` + strings.Join(of, ", ") + `}}}` }
	entry := func(manager, operation, fields string) string {
		return `{manager: ` + manager + `, operation: ` + operation + `, apiVersion: v1, fieldsV1: ` + fields + `}`
	}
	ours := entry("flotilla", "Apply", ports(port(90)))
	twice := field.Duplicate(field.NewPath("spec", "ports").Index(1).Child("name"), "http")
	cases := map[string]struct {
		desired, live string // the ports
		refused       *field.Error
		entries       []string
		left          []string // without ours; nil: there is nothing to take
		taken         string
	}{
		"the number of a port, by hand": {
			desired, `{name: http, port: 81, protocol: TCP}`, twice, []string{entry("kubectl-edit", "Update", ports(port(81))), ours}, []string{}, ports(port(81), port(90)),
		},
		"of several, the one that is in the way": {
			desired, `{name: http, port: 81, protocol: TCP}, {name: mine, port: 82, protocol: TCP}`, twice,
			[]string{entry("kubectl-edit", "Update", ports(port(81), port(82))), ours}, []string{entry("kubectl-edit", "Update", ports(port(82)))}, ports(port(81), port(90)),
		},
		"the port of a node": {
			desired, `{name: other, port: 81, protocol: TCP, nodePort: 30090}`, field.Duplicate(field.NewPath("spec", "ports").Index(1).Child("nodePort"), 30090),
			[]string{entry("kubectl-edit", "Update", ports(port(81))), ours}, []string{}, ports(port(81), port(90)),
		},
		"one that has no name, beside one that has none": {
			alone, `{port: 81, protocol: TCP}`, field.Required(field.NewPath("spec", "ports").Index(0).Child("name"), ""), []string{entry("kubectl-edit", "Update", ports(port(81)))}, []string{}, ports(port(81)),
		},
		"one that has a name, beside one that has none": {
			alone, `{name: mine, port: 81, protocol: TCP}`, field.Required(field.NewPath("spec", "ports").Index(0).Child("name"), ""), []string{entry("kubectl-edit", "Update", ports(port(81)))}, nil, "",
		},
		"what the cluster itself, or who applies for reasons of their own, has there": {
			desired, `{name: http, port: 81, protocol: TCP}`, twice, []string{entry("kube-controller-manager", "Update", ports(port(81))), entry("some-operator", "Apply", ports(port(81))), ours}, nil, "",
		},
		"another list was refused": {
			desired, `{name: http, port: 81, protocol: TCP}`, field.Duplicate(field.NewPath("spec", "others").Index(1).Child("name"), "http"), []string{entry("kubectl-edit", "Update", ports(port(81))), ours}, nil, "",
		},
		"another field was refused": {
			desired, `{name: http, port: 81, protocol: TCP}`, field.Invalid(field.NewPath("spec", "ports").Index(1).Child("name"), "http", ""), []string{entry("kubectl-edit", "Update", ports(port(81))), ours}, nil, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stands := object(t, `{apiVersion: v1, kind: Service, metadata: {name: web, uid: u, resourceVersion: "7", managedFields: [`+strings.Join(tc.entries, ", ")+`]}, spec: {ports: [`+tc.live+`]}}`)
			refusal := apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", field.ErrorList{tc.refused})
			patch, err := ownership.Displace(object(t, tc.desired), stands, refusal)
			if err != nil {
				t.Fatal(err)
			}
			if tc.left == nil {
				if patch != nil {
					t.Errorf("patch = %s, want none", patch)
				}
				return
			}
			var got map[string]any
			if err := json.Unmarshal(patch, &got); err != nil {
				t.Fatal(err)
			}
			mine := strings.Replace(entry("flotilla", "Apply", tc.taken), "fieldsV1", "fieldsType: FieldsV1, fieldsV1", 1)
			want := object(t, `{kind: X, metadata: {uid: u, resourceVersion: "7", managedFields: [`+strings.Join(append(tc.left, mine), ", ")+`]}}`)
			delete(want.Object, "kind")
			if diff := cmp.Diff(want.Object, got); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
	if patch, err := ownership.Displace(object(t, desired), object(t, desired), errors.New("no way")); patch != nil || err != nil {
		t.Errorf("of another refusal: %s, %v", patch, err)
	}
}

// TestWhatHasAnotherKey: an item whose key somebody changed is another one for servers, and the same one for people.
func TestWhatHasAnotherKey(t *testing.T) {
	const managed = `metadata: {name: web, managedFields: [{manager: kubectl-edit, operation: Update, apiVersion: v1, fieldsV1: {"f:spec": {"f:ports": {"k:{\"port\":81,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}}}]}`
	for name, tc := range map[string]struct{ desired, live, want string }{
		"the number of a port with a name":            {`{name: http, port: 80}`, `{name: http, port: 81, protocol: TCP}`, "spec.ports[http].port changed by kubectl-edit"},
		"the number of the only port":                 {`{port: 80}`, `{port: 81, protocol: TCP}`, `spec.ports[{"port":81,"protocol":"TCP"}].port changed by kubectl-edit`},
		"a port that comes beside ours":               {`{name: http, port: 80}`, `{name: http, port: 80, protocol: TCP}, {name: mine, port: 81, protocol: TCP}`, ""},
		"one that has the name of one that is there":  {`{name: http, port: 80}`, `{name: http, port: 80, protocol: TCP}, {name: http, port: 81, protocol: TCP}`, ""},
		"one that is ours but for what has a default": {`{name: http, port: 81}`, `{name: http, port: 81, protocol: TCP}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			desired := object(t, `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [`+tc.desired+`]}}`)
			live := object(t, `{apiVersion: v1, kind: Service, `+managed+`, spec: {ports: [`+tc.live+`]}}`)
			if got := ownership.Describe(ownership.Changes(desired, live)); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// crowded is how a server refuses ports of a container that have one name.
var crowded = apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", field.ErrorList{
	field.Duplicate(field.NewPath("spec", "template", "spec", "containers").Index(0).Child("ports").Index(1).Child("name"), "http"),
})

// FuzzMember looks at objects as hostile members may send them.
func FuzzMember(f *testing.F) {
	f.Add([]byte(`{"kind":"Deployment","metadata":{"managedFields":[{"manager":"a","operation":"Update","fieldsV1":{"f:spec":{"k:{\"name\":1}":{},"v:[":{},"i:-1":{},"f":{}}}}]},"spec":[1,{"name":"web"}]}`))
	f.Add([]byte(`{"kind":"Deployment","metadata":{"name":"web","namespace":"shop","managedFields":[7,{"fieldsV1":{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{}":{},"k:{\"name\":\"web\"}":{".":{}},"v:1":{}}}}}}}]},"spec":{"template":{"spec":{"containers":[{"name":"web"},{"name":"web"},7,null]}}}}`))
	f.Add([]byte(`{"kind":"Deployment","metadata":{"labels":7,"finalizers":{}},"spec":{"replicas":"two","selector":[]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		hostile := &unstructured.Unstructured{}
		if hostile.UnmarshalJSON(data) != nil {
			return
		}
		desired := object(t, applied)
		if text := ownership.Describe(ownership.Changes(desired, hostile)); len(text) > 1024 {
			t.Errorf("%d bytes are told", len(text))
		}
		if _, err := ownership.Adopt(desired, hostile); err != nil {
			t.Errorf("adopt: %v", err)
		}
		_, _ = ownership.Displace(desired, hostile, crowded) // what of ours cannot be read is an error
		retained := hostile.DeepCopy()
		retained.SetGroupVersionKind(desired.GroupVersionKind())
		retained.SetName("web")
		retained.SetNamespace("shop")
		for _, r := range []*unstructured.Unstructured{desired.DeepCopy(), retained} {
			got, err := ownership.Retained(desired, r, hostile)
			if other := r.GetName() != "web"; other != errors.Is(err, ownership.ErrOtherObject) || !other && got.GetName() != "web" {
				t.Errorf("retained = %v, %v", got, err)
			}
		}
		if diff := cmp.Diff(object(t, applied).Object, desired.Object); diff != "" {
			t.Errorf("changed what was desired:\n%s", diff)
		}
	})
}
