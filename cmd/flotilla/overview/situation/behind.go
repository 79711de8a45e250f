package situation

import (
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/standing"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/reconciler/switching"
)

// Behind is that Git says something else than what a template of a Kustomization is on the control plane, or
// than what clusters are given of it.
type Behind struct {
	// Reason is CamelCase and stable; empty where nothing is behind.
	Reason, Message, Next string
}

// Reasons why what is in Git has not come to clusters.
const (
	// ReasonHeldBySwitch: a part of a revision is written, and clusters wait for the rest.
	ReasonHeldBySwitch = "HeldBySwitch"
	// ReasonNotApplied: the revision that was tried last is not applied.
	ReasonNotApplied = "RevisionNotApplied"
	// ReasonKustomizationSuspended: the source has another revision, and is not looked at.
	ReasonKustomizationSuspended = "KustomizationSuspended"
)

// BehindOf says how far the Kustomization of a template is behind its source, which is at a revision; empty where
// that is not known.
func BehindOf(ks *kustomizev1.Kustomization, revision string) Behind {
	name := "Kustomization " + ks.Namespace + "/" + ks.Name
	ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
	cause := ""
	if ready != nil && ready.Status != metav1.ConditionTrue {
		cause = ": " + excerpt.Line(ready.Message)
	}
	switch {
	case apimeta.IsStatusConditionTrue(ks.Status.Conditions, switching.Condition):
		tried := excerpt.ShortRevision(ks.Status.LastAttemptedRevision)
		return Behind{ReasonHeldBySwitch, fmt.Sprintf("%s has written a part of revision %s: what is here may be of it, and clusters keep what they had, whoever changes it, until all is written%s",
			name, tried, cause), kustomizationNext(ks, ready)}
	case ks.Spec.Suspend && revision != "" && revision != standing.Revision(ks):
		return Behind{ReasonKustomizationSuspended, fmt.Sprintf("%s is suspended at revision %s: revision %s is not looked at", name, excerpt.ShortRevision(standing.Revision(ks)), excerpt.ShortRevision(revision)),
			"let it go on: flotilla resume kustomization " + ks.Name + inNamespace(ks.Namespace)}
	case ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason != meta.HealthCheckFailedReason && ks.Status.LastAttemptedRevision != ks.Status.LastAppliedRevision:
		return Behind{ReasonNotApplied, fmt.Sprintf("%s has not applied revision %s, so that what is in Git may be newer than this%s", name, excerpt.ShortRevision(ks.Status.LastAttemptedRevision), cause), kustomizationNext(ks, ready)}
	default:
		return Behind{}
	}
}
