package customizations

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// Table returns the rules of all kinds that come with Flotilla.
func Table() kinds.Table {
	all := kinds.Table{}
	for _, ecosystem := range []kinds.Table{
		kruise(), argo(), volcano(), flink(), spark(), flux(), kubeflow(), ray(), kyverno(),
		certManager(), keda(), gateway(), prometheus(), sigs(), knative(), databases(),
	} {
		maps.Copy(all, ecosystem)
	}
	return all
}

// kind names a kind as it is written in a manifest.
func kind(apiVersion, name string) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(apiVersion, name)
}

// served adds the same rules for several versions of a group.
func served(t kinds.Table, group string, versions []string, name string, r kinds.Rules) {
	for _, v := range versions {
		t[schema.GroupVersionKind{Group: group, Version: v, Kind: name}] = r
	}
}
