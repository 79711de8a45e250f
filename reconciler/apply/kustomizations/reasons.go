package kustomizations

import "github.com/flotilla-io/flotilla/reconciler/refusals"

// Reasons why a spec, or an annotation beside it, is refused; see package refusals.
const (
	ReasonInvalidAccount    = refusals.InvalidAccount
	ReasonInvalidAnnotation = refusals.InvalidAnnotation
	ReasonNotSupported      = refusals.NotSupported
)
