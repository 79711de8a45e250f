package selector_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/policies/selector"
)

// TestResourceOf: of an object, selectors see what names it and its labels, and
// nothing else.
func TestResourceOf(t *testing.T) {
	cases := map[string]struct {
		object map[string]any
		want   selector.Resource
	}{
		"one in a namespace": {
			map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": int64(1)},
				"metadata": map[string]any{
					"namespace": "shop", "name": "web", "uid": "u",
					"labels": map[string]any{"app": "web"}, "annotations": map[string]any{"a": "b"},
				},
			},
			selector.Resource{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}},
		},
		"one of no namespace and without labels": {
			map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "n"}},
			selector.Resource{APIVersion: "v1", Kind: "Node", Name: "n"},
		},
		"labels of a shape that nobody expects are none": {
			map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "n", "labels": "app"}},
			selector.Resource{APIVersion: "v1", Kind: "Node", Name: "n"},
		},
		"nothing": {map[string]any{}, selector.Resource{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, selector.ResourceOf(&unstructured.Unstructured{Object: tc.object})); diff != "" {
				t.Errorf("resource (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSpecificityWords: each specificity has its own word, from the least to
// the most specific.
func TestSpecificityWords(t *testing.T) {
	var got []string
	for s := selector.None; s <= selector.Name; s++ {
		got = append(got, s.String())
	}
	if diff := cmp.Diff([]string{"none", "all of its kind", "by labels", "by name"}, got); diff != "" {
		t.Errorf("words (-want +got):\n%s", diff)
	}
}
