package cascadeguard

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// ward is a member that lists the given objects, or none.
type ward struct {
	config *rest.Config
	http   *http.Client
}

func (ward) Name() string                  { return "eu-1" }
func (w ward) Config() *rest.Config        { return w.config }
func (w ward) HTTP() *http.Client          { return w.http }
func (ward) Clients() kubernetes.Interface { return nil }
func (ward) Get(context.Context, schema.GroupVersionKind, types.NamespacedName) (*unstructured.Unstructured, error) {
	return nil, nil
}

// TestLeft: the objects that are left of a kind while its definition is being deleted are named with what keeps them,
// whoever owns them, and even if they are being deleted.
func TestLeft(t *testing.T) {
	boat := func(name string, finalizers ...string) string {
		metadata := ""
		if len(finalizers) > 0 {
			metadata = `,"finalizers":["` + strings.Join(finalizers, `","`) + `"]`
		}
		return `{"metadata":{"namespace":"shop","name":"` + name + `","deletionTimestamp":"2026-01-01T00:00:00Z"` + metadata + `}}`
	}
	many := make([]string, 9)
	for i := range many {
		many[i] = boat(fmt.Sprint(i))
	}
	for name, tc := range map[string]struct {
		kind   string // CustomResourceDefinition if empty
		served string // the version that the definition serves; v1 if empty
		there  []string
		code   int
		blind  bool // the member cannot be read
		want   []string
	}{
		"nothing is left":          {},
		"one is, and is held":      {there: []string{boat("a", "example.com/a", "example.com/b")}, want: []string{"Boat shop/a (kept by its finalizers: example.com/a, example.com/b)"}},
		"one is, and goes":         {there: []string{boat("a")}, want: []string{"Boat shop/a"}},
		"many are":                 {there: many, want: []string{"Boat shop/0", "Boat shop/1", "Boat shop/2", "Boat shop/3", "Boat shop/4", "Boat shop/5"}},
		"they are not served":      {code: http.StatusNotFound},
		"they may not be listed":   {code: http.StatusForbidden},
		"no version is served":     {served: "none", there: []string{boat("a")}},
		"it is no definition":      {kind: "CustomResource", there: []string{boat("a")}},
		"it cannot be looked into": {there: []string{boat("a")}, blind: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if tc.code != 0 {
					w.WriteHeader(tc.code)
				}
				if r.URL.Path != "/apis/sea.example/v1/boats" {
					t.Errorf("asks for %s", r.URL.Path)
				}
				_, _ = fmt.Fprintf(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[%s]}`, strings.Join(tc.there, ","))
			}))
			defer server.Close()
			kind, version := tc.kind, tc.served
			if kind == "" {
				kind = "CustomResourceDefinition"
			}
			if version == "" {
				version = "v1"
			}
			crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": kind, "spec": map[string]any{
				"group": "sea.example", "names": map[string]any{"plural": "boats", "kind": "Boat"},
				"versions": []any{map[string]any{"name": "v0", "served": false}, map[string]any{"name": "v1", "served": version == "v1"}},
			}}}
			var edge any = ward{config: &rest.Config{Host: server.URL}, http: server.Client()}
			if tc.blind {
				edge = "a member"
			}
			if diff := cmp.Diff(tc.want, Left(t.Context(), edge, crd)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
