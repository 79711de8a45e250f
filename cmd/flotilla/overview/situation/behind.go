package situation

import (
	"cmp"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/remark"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/wording"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/standing"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// Behind says that a template of a Kustomization differs from Git, on the control plane or in what clusters
// are sent.
type Behind struct {
	// Reason is CamelCase and stable; empty if nothing is behind.
	Reason, Message, Next string
}

// Reasons why clusters do not have what is in Git.
const (
	// ReasonHeldBySwitch: a revision is only partly written, and clusters wait for the rest.
	ReasonHeldBySwitch = "HeldBySwitch"
	// ReasonNotApplied: the revision that was attempted last was not applied.
	ReasonNotApplied = "RevisionNotApplied"
	// ReasonKustomizationSuspended: the source has a newer revision, and the Kustomization is suspended.
	ReasonKustomizationSuspended = "KustomizationSuspended"
)

// BehindOf returns whether the Kustomization of a template is behind its source, given the source's revision; an
// empty revision is not known.
func BehindOf(ks *kustomizev1.Kustomization, revision string) Behind {
	name := "Kustomization " + ks.Namespace + "/" + ks.Name
	ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
	cause := ""
	if ready != nil && ready.Status != metav1.ConditionTrue {
		cause = ": " + excerpt.Line(ready.Message)
	}
	switch {
	case revisiongate.HoldsAll(ks.Status.Conditions):
		tried := excerpt.ShortRevision(cmp.Or(revisiongate.Announced(ks.Status.Conditions), ks.Status.LastAttemptedRevision))
		return Behind{ReasonHeldBySwitch, fmt.Sprintf("%s has written a part of revision %s: what is here may be of it, and clusters keep what they had, whoever changes it, until all is written%s",
			name, tried, cause), remark.KustomizationNext(ks, ready)}
	case ks.Spec.Suspend && revision != "" && revision != standing.Revision(ks):
		return Behind{ReasonKustomizationSuspended, fmt.Sprintf("%s is suspended at revision %s: revision %s is not looked at", name, excerpt.ShortRevision(standing.Revision(ks)), excerpt.ShortRevision(revision)),
			"let it go on: flotilla resume kustomization " + ks.Name + wording.InNamespace(ks.Namespace)}
	case ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason != meta.HealthCheckFailedReason && ks.Status.LastAttemptedRevision != ks.Status.LastAppliedRevision:
		return Behind{ReasonNotApplied, fmt.Sprintf("%s has not applied revision %s, so that what is in Git may be newer than this%s", name, excerpt.ShortRevision(ks.Status.LastAttemptedRevision), cause), remark.KustomizationNext(ks, ready)}
	default:
		return Behind{}
	}
}
