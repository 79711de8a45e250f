package undeletable_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/policies/undeletable"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestContinues(t *testing.T) {
	const (
		deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\n"
		set        = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: web, namespace: shop}\n"
		config     = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\n"
		job        = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: web, namespace: shop}\n"
		claim      = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: web, namespace: shop}\n"
		boat       = "apiVersion: sea.example/v1\nkind: Boat\nmetadata: {name: web, namespace: shop}\n"
	)
	for name, tc := range map[string]struct {
		was, is string
		want    bool
	}{
		"a workload as it was":                   {deployment + "spec: {replicas: 1, selector: {matchLabels: {a: b}}}", deployment + "spec: {replicas: 1, selector: {matchLabels: {a: b}}}", true},
		"a workload with another image":          {deployment + "spec: {selector: {matchLabels: {a: b}}, template: {x: 1}}", deployment + "spec: {selector: {matchLabels: {a: b}}, template: {x: 2}}", true},
		"a workload of other pods":               {deployment + "spec: {selector: {matchLabels: {a: b}}}", deployment + "spec: {selector: {matchLabels: {a: c}}}", false},
		"a set with more replicas":               {set + "spec: {replicas: 1, serviceName: a}", set + "spec: {replicas: 2, serviceName: a}", true},
		"a set with other claims":                {set + "spec: {volumeClaimTemplates: [{a: 1}]}", set + "spec: {volumeClaimTemplates: [{a: 2}]}", false},
		"a set behind another service":           {set + "spec: {serviceName: a}", set + "spec: {serviceName: b}", false},
		"a config as it was, labelled":           {config + "data: {a: b}", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop, labels: {x: y}}\ndata: {a: b}", true},
		"a config with other data":               {config + "data: {a: b}", config + "data: {a: c}", false},
		"a Job as it was":                        {job + "spec: {a: b}", job + "spec: {a: b}", false},
		"a claim as it was":                      {claim + "spec: {a: b}", claim + "spec: {a: b}", false},
		"what is of no known kind, as it was":    {boat + "spec: {a: b}\nstatus: {floats: true}", boat + "spec: {a: b}", true},
		"what is of no known kind, in a version": {boat + "spec: {a: b}", "apiVersion: sea.example/v2\nkind: Boat\nmetadata: {name: web, namespace: shop}\nspec: {a: b}", true},
		"what is of no known kind, edited":       {boat + "spec: {a: b}", boat + "spec: {a: c}", false},
		"another name":                           {boat, "apiVersion: sea.example/v1\nkind: Boat\nmetadata: {name: web2, namespace: shop}\n", false},
		"another kind":                           {boat, config, false},
	} {
		if got := undeletable.Continues(object(t, tc.was), object(t, tc.is)); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
