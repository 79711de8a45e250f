package words

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// Kind returns the kind with the apiVersion and name that a manifest has.
func Kind(apiVersion, name string) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(apiVersion, name)
}

// Served adds the same rules to t for several versions of a kind.
func Served(t kinds.Table, group string, versions []string, name string, r kinds.Rules) {
	for _, v := range versions {
		t[schema.GroupVersionKind{Group: group, Version: v, Kind: name}] = r
	}
}
