// Package carriers knows which policies carry something, by what has their claim.
//
// In go bindings and templates; out comes whether a policy is known to carry one. It reads nothing. The count in a policy's own status
// follows a moment later.
package carriers
