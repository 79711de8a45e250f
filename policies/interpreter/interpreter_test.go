package interpreter_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func itemsOf(statuses []string) []workv1alpha2.AggregatedStatusItem {
	var items []workv1alpha2.AggregatedStatusItem
	for i, s := range statuses {
		item := workv1alpha2.AggregatedStatusItem{ClusterName: "m" + string(rune('1'+i))}
		if s != "-" {
			item.Status = &runtime.RawExtension{Raw: []byte(s)}
		}
		items = append(items, item)
	}
	return items
}

// TestLayers checks that, for each operation, the first layer with a rule counts.
func TestLayers(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	first := kinds.Table{gvk: {Health: func(kinds.Object) (bool, error) { return true, nil }}}
	second := kinds.Table{gvk: {
		Health:   func(kinds.Object) (bool, error) { return false, nil },
		Replicas: func(kinds.Object) (int32, *workv1alpha2.ReplicaRequirements, error) { return 42, nil, nil },
	}}
	know, obj := interpreter.New(first, second), object(t, `{apiVersion: apps/v1, kind: Deployment}`)
	health, _ := know.Health(obj)
	n, _, _, _ := know.Replicas(obj)
	if health != workv1alpha2.ResourceHealthy || n != 42 {
		t.Errorf("health = %v, replicas = %d", health, n)
	}
}

// TestNodeClaims checks that an empty node claim is left out, whichever rule
// returns it.
func TestNodeClaims(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	obj := object(t, `{apiVersion: apps/v1, kind: Deployment}`)
	full := workv1alpha2.NodeClaim{NodeSelector: map[string]string{"disk": "fast"}}
	for name, tc := range map[string]struct{ says, want *workv1alpha2.NodeClaim }{
		"none":                  {},
		"an empty one":          {says: &workv1alpha2.NodeClaim{}},
		"one of empty parts":    {says: &workv1alpha2.NodeClaim{NodeSelector: map[string]string{}, Tolerations: []corev1.Toleration{}, HardNodeAffinity: &corev1.NodeSelector{}}},
		"one with a selector":   {says: &full, want: &full},
		"one with a toleration": {says: &workv1alpha2.NodeClaim{Tolerations: []corev1.Toleration{{}}}, want: &workv1alpha2.NodeClaim{Tolerations: []corev1.Toleration{{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			requirements := &workv1alpha2.ReplicaRequirements{NodeClaim: tc.says, Namespace: "shop"}
			parts := []workv1alpha2.Component{{Name: "a"}, {Name: "b", ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{NodeClaim: tc.says}}}
			know := interpreter.New(kinds.Table{gvk: {
				Replicas:   func(kinds.Object) (int32, *workv1alpha2.ReplicaRequirements, error) { return 1, requirements, nil },
				Components: func(kinds.Object) ([]workv1alpha2.Component, error) { return parts, nil },
			}})
			_, req, _, _ := know.Replicas(obj)
			if diff := cmp.Diff(&workv1alpha2.ReplicaRequirements{NodeClaim: tc.want, Namespace: "shop"}, req); diff != "" {
				t.Errorf("replicas (-want +got):\n%s", diff)
			}
			got, _, _ := know.Components(obj)
			want := []workv1alpha2.Component{{Name: "a"}, {Name: "b", ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{NodeClaim: tc.want}}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("components (-want +got):\n%s", diff)
			}
			if requirements.NodeClaim != tc.says || parts[1].ReplicaRequirements.NodeClaim != tc.says {
				t.Error("what was said, and may be said to others, is changed")
			}
		})
	}
}
