package volumes_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// TestLeftBehind: the claims that a StatefulSet makes are the cluster's own: it leaves without its data.
func TestLeftBehind(t *testing.T) {
	set := func(apiVersion, kind string, templates ...string) *unstructured.Unstructured {
		var claims []any
		for _, name := range templates {
			claims = append(claims, map[string]any{"metadata": map[string]any{"name": name}})
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "db", "namespace": "shop"}, "spec": map[string]any{"volumeClaimTemplates": claims},
		}}
	}
	retention := func(obj *unstructured.Unstructured, when string, named bool) *unstructured.Unstructured {
		_ = unstructured.SetNestedField(obj.Object, when, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
		if named {
			obj.SetAnnotations(map[string]string{workv1alpha2.AllowCascadeAnnotation: "true"})
		}
		return obj
	}
	pods := func(apiVersion, kind string, path []string, names ...string) *unstructured.Unstructured {
		obj := set(apiVersion, kind)
		volumes := []any{map[string]any{"name": "tmp", "emptyDir": map[string]any{}}}
		for _, name := range names {
			volumes = append(volumes, map[string]any{"name": name, "persistentVolumeClaim": map[string]any{"claimName": name}})
		}
		_ = unstructured.SetNestedSlice(obj.Object, volumes, append(path, "volumes")...)
		return obj
	}
	spec := []string{"spec", "template", "spec"}
	claim := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": map[string]any{"name": "files"}}}
	const goes = "it takes no data along: "
	for name, tc := range map[string]struct {
		template *unstructured.Unstructured
		from     []string
		want     string
	}{
		"one claim for each replica":               {set("apps/v1", "StatefulSet", "data"), []string{"west"}, goes + "the PersistentVolumeClaims data-db-* stay in west, and it begins with empty ones elsewhere"},
		"two, in two clusters":                     {set("apps/v1", "StatefulSet", "data", "log"), []string{"west", "east"}, goes + "the PersistentVolumeClaims data-db-*, log-db-* stay in east, west, and it begins with empty ones elsewhere"},
		"of OpenKruise":                            {set("apps.kruise.io/v1beta1", "StatefulSet", "data"), []string{"west"}, goes + "the PersistentVolumeClaims data-db-* stay in west, and it begins with empty ones elsewhere"},
		"they go with it, as somebody has said":    {retention(set("apps/v1", "StatefulSet", "data"), "Delete", true), []string{"west"}, goes + "the PersistentVolumeClaims data-db-* go with the copy in west, and it begins with empty ones elsewhere"},
		"they would go, and nobody has named them": {retention(set("apps/v1", "StatefulSet", "data"), "Delete", false), []string{"west"}, goes + "the PersistentVolumeClaims data-db-* stay in west, and it begins with empty ones elsewhere"},
		"it makes none":                            {set("apps/v1", "StatefulSet"), []string{"west"}, ""},
		"it leaves none":                           {set("apps/v1", "StatefulSet", "data"), nil, ""},
		"a Deployment":                             {set("apps/v1", "Deployment", "data"), []string{"west"}, ""},
		"a Deployment that mounts one":             {pods("apps/v1", "Deployment", spec, "files"), []string{"west"}, goes + "the PersistentVolumeClaim files stays in west, and elsewhere it mounts others of that name"},
		"a CronJob that mounts two":                {pods("batch/v1", "CronJob", []string{"spec", "jobTemplate", "spec", "template", "spec"}, "in", "out", "in"), []string{"west"}, goes + "the PersistentVolumeClaims in, out stay in west, and elsewhere it mounts others of that name"},
		"a Pod that mounts one":                    {pods("v1", "Pod", []string{"spec"}, "files"), []string{"west"}, goes + "the PersistentVolumeClaim files stays in west, and elsewhere it mounts others of that name"},
		"a Deployment without one":                 {pods("apps/v1", "Deployment", spec), []string{"west"}, ""},
		"somebody's kind":                          {pods("sea.example/v1", "Boat", spec, "files"), []string{"west"}, ""},
		"volumes that are none":                    {&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"volumes": "x"}}}, []string{"west"}, ""},
		"a claim itself":                           {claim, []string{"west"}, goes + "it stays in west, and an empty one is made elsewhere"},
		"a claim that names itself":                {retention(claim.DeepCopy(), "Retain", true), []string{"west"}, goes + "it goes with its copy in west, and an empty one is made elsewhere"},
		"nothing is known of it":                   {nil, []string{"west"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := volumes.LeftBehind(tc.template, tc.from); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}
