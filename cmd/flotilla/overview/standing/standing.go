// Package standing finds which revision of a Kustomization is on the control plane.
//
// In goes a Kustomization; out come a revision, and its message with the revision that this is about. It reads nothing
// else and writes nothing.
package standing

import (
	"fmt"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Revision returns the revision whose objects are on the control plane, healthy or not; empty where none is known.
func Revision(ks *kustomizev1.Kustomization) string {
	if record := lastgood.In(ks.Status); record.Whole() {
		return record.Revision
	}
	ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
	if ready == nil || ks.Status.LastAttemptedRevision == "" {
		return ks.Status.LastAppliedRevision
	}
	// One whose health is being waited for, or did not come, is not "applied" yet, and its objects are there.
	waits := strings.HasPrefix(ready.Message, "Running health checks ") || strings.HasPrefix(ready.Message, "Applied revision "+ks.Status.LastAttemptedRevision)
	if waits || ready.Reason == meta.HealthCheckFailedReason {
		return ks.Status.LastAttemptedRevision
	}
	return ks.Status.LastAppliedRevision
}

// Elsewhere returns a text about the objects of a Kustomization that are in a cluster outside of the fleet; empty if they are on the
// control plane.
func Elsewhere(ks *kustomizev1.Kustomization) string {
	place := inventory.PlaceOf(ks.Status)
	entries, err := inventory.In(ks, place)
	switch {
	case place == (inventory.Place{}), err != nil:
		return ""
	case len(entries) == 1:
		return fmt.Sprintf("1 object %s, outside of the fleet", place)
	default:
		return fmt.Sprintf("%d objects %s, outside of the fleet", len(entries), place)
	}
}

// Attempted adds to the message of a Kustomization which revision that is about, where it is not the
// one that was applied last and the message does not name it.
func Attempted(ks *kustomizev1.Kustomization, message string) string {
	tried := ks.Status.LastAttemptedRevision
	if tried == "" || tried == ks.Status.LastAppliedRevision || strings.Contains(message, tried) {
		return excerpt.Revisions(message)
	}
	return "revision " + excerpt.ShortRevision(tried) + ": " + excerpt.Revisions(message)
}
