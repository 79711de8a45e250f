package kustomizations

import (
	"slices"

	"github.com/fluxcd/pkg/apis/acl"
)

// Reasons why a spec, or an annotation beside it, is refused.
const (
	// ReasonInvalidAccount says that spec.serviceAccountName is no valid name.
	ReasonInvalidAccount = "InvalidServiceAccount"
	// ReasonInvalidAnnotation says that an annotation has an invalid value.
	ReasonInvalidAnnotation = "InvalidAnnotation"
	// ReasonNotSupported says that a field asks for something unsupported.
	ReasonNotSupported = "NotSupported"
)

// OfSpec reports whether a reason is about the spec, so that another revision of the source makes no difference.
func OfSpec(reason string) bool {
	return slices.Contains([]string{acl.AccessDeniedReason, ReasonInvalidAccount, ReasonInvalidAnnotation, ReasonNotSupported}, reason)
}
