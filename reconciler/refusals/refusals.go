// Package refusals knows for which reasons a Kustomization is refused by what it asks for itself, rather than by what the files of
// its source hold.
//
// In goes the reason of its condition Ready; out comes whether that is about the spec, and whether another revision may lift it. The
// package reads nothing, writes nothing and keeps no state.
package refusals

import (
	"github.com/fluxcd/pkg/apis/acl"
	"github.com/fluxcd/pkg/apis/meta"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Reasons of our own, next to Flux's.
const (
	// InvalidAccount says that spec.serviceAccountName is no valid name.
	InvalidAccount = "InvalidServiceAccount"
	// InvalidAnnotation says that an annotation has an invalid value.
	InvalidAnnotation = "InvalidAnnotation"
	// NotSupported says that a field asks for something unsupported.
	NotSupported = "NotSupported"
	// DependencyCycle says that Kustomizations wait for each other.
	DependencyCycle = "DependencyCycle"
	// InvalidKubeConfig says that the Secret of spec.kubeConfig does not lead to a cluster, or in a way that is not allowed.
	InvalidKubeConfig = "InvalidKubeConfig"
	// EmptyBuild says that the folder of spec.path holds no manifests.
	EmptyBuild = "EmptyBuild"
	// ApprovalMissing says that a revision lacks an approval that a PullRequestReview enforces.
	ApprovalMissing = "ApprovalMissing"
)

// liftable holds the reasons that are about the spec, or an annotation beside it, and whether another revision may lift
// each while the spec stays as it is.
var liftable = map[string]bool{
	acl.AccessDeniedReason: false, InvalidAccount: false, InvalidAnnotation: false, NotSupported: false, InvalidKubeConfig: false,
	DependencyCycle: true, EmptyBuild: true, inventory.ReasonPathNotFound: true, meta.InvalidCELExpressionReason: true,
}

// BySpec reports whether a reason is about what a Kustomization asks for itself, whatever its files hold.
func BySpec(reason string) bool {
	_, is := liftable[reason]
	return is
}

// AtAnyRevision reports whether a reason is one that another revision of the source does not lift.
func AtAnyRevision(reason string) bool {
	lifts, is := liftable[reason]
	return is && !lifts
}
