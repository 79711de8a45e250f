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
		"one claim for each replica":               {set("apps/v1", "StatefulSet", "data"), []string{"west"}, goes + "the PersistentVolumeClaims data-db-* stay in west, and elsewhere it goes on with those that are there, else with empty ones"},
		"two, in two clusters":                     {set("apps/v1", "StatefulSet", "data", "log"), []string{"west", "east"}, goes + "the PersistentVolumeClaims data-db-*, log-db-* stay in east, west, and elsewhere it goes on with those that are there, else with empty ones"},
		"of OpenKruise":                            {set("apps.kruise.io/v1beta1", "StatefulSet", "data"), []string{"west"}, goes + "the PersistentVolumeClaims data-db-* stay in west, and elsewhere it goes on with those that are there, else with empty ones"},
		"they go with it, as somebody has said":    {retention(set("apps/v1", "StatefulSet", "data"), "Delete", true), []string{"west"}, goes + "the PersistentVolumeClaims data-db-* go with the copy in west, and elsewhere it goes on with those that are there, else with empty ones"},
		"they would go, and nobody has named them": {retention(set("apps/v1", "StatefulSet", "data"), "Delete", false), []string{"west"}, goes + "the PersistentVolumeClaims data-db-* stay in west, and elsewhere it goes on with those that are there, else with empty ones"},
		"it makes none":                            {set("apps/v1", "StatefulSet"), []string{"west"}, ""},
		"it leaves none":                           {set("apps/v1", "StatefulSet", "data"), nil, ""},
		"a Deployment":                             {set("apps/v1", "Deployment", "data"), []string{"west"}, ""},
		"a Deployment that mounts one":             {pods("apps/v1", "Deployment", spec, "files"), []string{"west"}, goes + "the PersistentVolumeClaim files stays in west, and elsewhere it mounts others of that name"},
		"a CronJob that mounts two":                {pods("batch/v1", "CronJob", []string{"spec", "jobTemplate", "spec", "template", "spec"}, "in", "out", "in"), []string{"west"}, goes + "the PersistentVolumeClaims in, out stay in west, and elsewhere it mounts others of that name"},
		"a Pod that mounts one":                    {pods("v1", "Pod", []string{"spec"}, "files"), []string{"west"}, goes + "the PersistentVolumeClaim files stays in west, and elsewhere it mounts others of that name"},
		"a Deployment without one":                 {pods("apps/v1", "Deployment", spec), []string{"west"}, ""},
		"somebody's kind":                          {pods("sea.example/v1", "Boat", spec, "files"), []string{"west"}, ""},
		"volumes that are none":                    {&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"volumes": "x"}}}, []string{"west"}, ""},
		"a claim itself":                           {claim, []string{"west"}, goes + "it stays in west, and elsewhere the one that is there is used, else an empty one is made"},
		"a claim that names itself":                {retention(claim.DeepCopy(), "Retain", true), []string{"west"}, goes + "it goes with its copy in west, and elsewhere the one that is there is used, else an empty one is made"},
		"nothing is known of it":                   {nil, []string{"west"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := volumes.LeftBehind(tc.template, tc.from, nil); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// TestLeftBehindForWhatIsThere: where a cluster still has claims of that name, a template goes on with old data, and not with empty ones.
func TestLeftBehindForWhatIsThere(t *testing.T) {
	object := func(apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": name}, "spec": spec}}
	}
	set := object("apps/v1", "StatefulSet", "db", map[string]any{"volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": "data"}}}})
	web := object("apps/v1", "Deployment", "web", map[string]any{"template": map[string]any{"spec": map[string]any{"volumes": []any{map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "files"}}}}}})
	files := object("v1", "PersistentVolumeClaim", "files", nil)
	const goes = "it takes no data along: the PersistentVolumeClaims data-db-* stay in b"
	for name, tc := range map[string]struct {
		template *unstructured.Unstructured
		there    volumes.Found
		want     string
	}{
		"one":                       {set, volumes.Found{"a": {named("data-db-0")}}, goes + "; a still has data-db-0, and it goes on with that, without what was written in b since"},
		"two":                       {set, volumes.Found{"a": {named("data-db-0"), named("data-db-1"), named("files")}}, goes + "; a still has data-db-0, data-db-1, and it goes on with those, without what was written in b since"},
		"in two clusters":           {set, volumes.Found{"c": {named("data-db-0")}, "a": {named("data-db-0")}}, goes + "; a still has data-db-0, and c still has data-db-0, and it goes on with those, without what was written in b since"},
		"another set's":             {set, volumes.Found{"a": {named("data-db2-0"), named("data-db")}}, goes + ", and elsewhere it goes on with those that are there, else with empty ones"},
		"in another namespace":      {set, volumes.Found{"a": {{Namespace: "lab", Name: "data-db-0"}}}, goes + ", and elsewhere it goes on with those that are there, else with empty ones"},
		"the one that is mounted":   {web, volumes.Found{"a": {named("files")}}, "it takes no data along: the PersistentVolumeClaim files stays in b; a still has files, and it goes on with that, without what was written in b since"},
		"the claim itself":          {files, volumes.Found{"a": {named("files")}}, "it takes no data along: it stays in b; a still has files, which is used again, without what was written in b since"},
		"where it does not go":      {files, volumes.Found{"c": {named("files")}}.In([]string{"a"}), "it takes no data along: it stays in b, and elsewhere the one that is there is used, else an empty one is made"},
		"nothing is known of them":  {files, volumes.Found(nil).In([]string{"a"}), "it takes no data along: it stays in b, and elsewhere the one that is there is used, else an empty one is made"},
		"nothing is known of it":    {nil, volumes.Found{"a": {named("files")}}, ""},
		"a Deployment without them": {object("apps/v1", "Deployment", "web", nil), volumes.Found{"a": {named("files")}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := volumes.LeftBehind(tc.template, []string{"b"}, tc.there); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}
