package remark

import (
	"strings"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/override"
)

// OverrideNext returns the next step for an override that cannot be applied; empty if the message
// is not about one.
func OverrideNext(message string) string {
	namespace, name, ok := override.FaultOf(message)
	if !ok {
		return ""
	}
	kind := policyv1alpha1.ResourceKindOverridePolicy
	if namespace == "" {
		kind = policyv1alpha1.ResourceKindClusterOverridePolicy
	}
	return "correct the override, or the template, so that they fit: flotilla edit " + strings.ToLower(kind) + " " + name + inNamespace(namespace)
}
