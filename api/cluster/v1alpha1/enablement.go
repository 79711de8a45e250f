package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// APIEnablementStatus reports whether a member serves an API.
type APIEnablementStatus string

const (
	// APIEnabled means that the member serves the API.
	APIEnabled APIEnablementStatus = "APIEnabled"
	// APIDisabled means that it does not: the list is complete without it.
	APIDisabled APIEnablementStatus = "APIDisabled"
	// APIUnknown means that the list is not complete, so absence says nothing.
	APIUnknown APIEnablementStatus = "APIUnknown"
)

// APIEnablement reports whether the member serves kind gvk, as far as its status
// tells.
func (c *Cluster) APIEnablement(gvk schema.GroupVersionKind) APIEnablementStatus {
	if _, ok := c.APIResource(gvk); ok {
		return APIEnabled
	}
	if meta.IsStatusConditionTrue(c.Status.Conditions, ClusterConditionCompleteAPIEnablements) {
		return APIDisabled
	}
	return APIUnknown
}

// APIResource returns what the member's status lists for kind gvk. False: the
// list does not have it.
func (c *Cluster) APIResource(gvk schema.GroupVersionKind) (APIResource, bool) {
	groupVersion := gvk.GroupVersion().String()
	for _, enablement := range c.Status.APIEnablements {
		if enablement.GroupVersion != groupVersion {
			continue
		}
		for _, r := range enablement.Resources {
			if r.Kind == gvk.Kind {
				return r, true
			}
		}
	}
	return APIResource{}, false
}
