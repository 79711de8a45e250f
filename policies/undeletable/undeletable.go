// Package undeletable decides whether an object that was to be deleted, and is asked for again, can stay as it is, or must be created anew.
//
// In go the object as it was asked for, and as it is asked for now; out comes whether it can go on without being made
// anew. The package knows nothing of clusters and of what they have.
package undeletable

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/volumes"
)

// once are the kinds of which each new object is a run of its own.
var once = []schema.GroupKind{{Group: "batch", Kind: "Job"}, {Kind: "Pod"}}

// fixed are, of kinds that run for as long as they are there, the fields of spec that cannot be changed. Another value asks for another
// object.
var fixed = map[schema.GroupKind][]string{
	{Group: "apps", Kind: "Deployment"}:  {"selector"},
	{Group: "apps", Kind: "DaemonSet"}:   {"selector"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"selector"},
	{Group: "apps", Kind: "StatefulSet"}: {"selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates"},
}

// Continues reports whether an object that was asked for as was goes on as one that is asked for as is. A workload does, whatever was
// changed that it takes up as it runs; anything else where nothing but its metadata was changed, as what cannot be changed is not known
// of most kinds. What runs once does not, as to make it anew is to run it again, nor does a volume claim, of which others decide.
func Continues(was, is *unstructured.Unstructured) bool {
	kind := is.GroupVersionKind().GroupKind()
	switch {
	case was.GroupVersionKind().GroupKind() != kind || was.GetNamespace() != is.GetNamespace() || was.GetName() != is.GetName():
		return false
	case slices.Contains(once, kind), volumes.IsVolumeClaim(kind):
		return false
	}
	fields, runs := fixed[kind]
	if !runs {
		return equality.Semantic.DeepEqual(content(was), content(is))
	}
	return !slices.ContainsFunc(fields, func(field string) bool {
		before, _, _ := unstructured.NestedFieldNoCopy(was.Object, "spec", field)
		after, _, _ := unstructured.NestedFieldNoCopy(is.Object, "spec", field)
		return !equality.Semantic.DeepEqual(before, after)
	})
}

// content is all of an object but what names it, and what it reports.
func content(obj *unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for key, value := range obj.Object {
		if key != "metadata" && key != "status" && key != "apiVersion" {
			out[key] = value
		}
	}
	return out
}
