// Package notices decides which Events a run of the apply loop emits about its Kustomization.
//
// In goes what a run found and did, as values, with the Kustomization before and after it; out come the Events, none
// for an outcome like the last one. It never reads or writes an object, and has neither clock nor state.
package notices

import (
	"cmp"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// MostNamed is how many objects an Event about what was deleted names.
const MostNamed = 10

// Notice is an Event about a Kustomization. Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
type Notice struct{ Type, Reason, Message string }

// Run is what a run found and did.
type Run struct {
	// Before is the Kustomization as the run read it, After as it wrote it. Outcome is nil for a run without an error.
	Before, After *kustomizev1.Kustomization
	Outcome       *loop.Error
	// Revision is the one of the source, empty if that has none. Included names what belongs to it besides, empty for nothing.
	Revision, Included string
	// Changes says what was done for the revision, Omitted what of it is not applied. DriftCorrected and OwedDeleted are about the
	// last good revision, while this one is refused. All are empty for nothing.
	Changes, Omitted, DriftCorrected, OwedDeleted string
	// Repeated returns what there is to say of objects that others delete again and again; empty for nothing. It is called
	// where that is said.
	Repeated func() string
	// Anew says that what the revision consists of is new.
	Anew bool
	// SameContent says that the revision holds here what the last one held.
	SameContent bool
	// Undecided says that it is not known of some objects whether others of the source want them.
	Undecided bool
}

// Of returns the Events of a run: for drift that was corrected, for a transition of the condition Ready, for what was done about
// the last good revision, and for what is omitted.
func Of(r Run) []Notice {
	var out []Notice
	normal := func(reason, message string) { out = append(out, Notice{corev1.EventTypeNormal, reason, message}) }
	if r.Changes != "" && r.correctsDrift() {
		normal(applier.ReasonDriftCorrected, "Brought back to revision "+r.Revision+": "+r.Changes+r.Repeated())
	}
	out = append(out, transition(r)...)
	stays := "revision " + lastgood.In(r.Before.Status).Revision + ", which stays while " + r.Revision + " is not applied: "
	if r.DriftCorrected != "" {
		normal(applier.ReasonDriftCorrected, "Brought back to "+stays+r.DriftCorrected)
	}
	if r.OwedDeleted != "" {
		normal(meta.ReconciliationSucceededReason, "Removed what had left "+stays+r.OwedDeleted)
	}
	if r.Omitted != "" {
		out = append(out, Notice{corev1.EventTypeWarning, applier.ReasonOmitted, "Not applied of revision " + r.Revision + ": " + r.Omitted})
	}
	return out
}

func (r Run) correctsDrift() bool { return CorrectsDrift(r.Before, r.Revision, r.Outcome, r.Anew) }

// CorrectsDrift reports whether the changes of a run correct drift: it applied a revision that this generation of the
// Kustomization had applied before, and what that consists of is not new. Health is reported later.
func CorrectsDrift(before *kustomizev1.Kustomization, revision string, outcome *loop.Error, anew bool) bool {
	status := before.Status
	return kustomizations.Applied(outcome) && !anew && status.LastAppliedRevision == revision && status.ObservedGeneration == before.Generation && len(inventory.Leaving(status)) == 0
}

// transition returns the Event for a transition of the condition Ready; none if there is nothing new to say.
func transition(r Run) []Notice {
	was := apimeta.FindStatusCondition(r.Before.Status.Conditions, meta.ReadyCondition)
	is := apimeta.FindStatusCondition(r.After.Status.Conditions, meta.ReadyCondition)
	switch {
	case is == nil:
		return nil
	case r.Outcome != nil:
		return failure(r, was, is)
	case is.Reason == health.ReasonClusterSilent && (was == nil || was.Reason != is.Reason):
		return []Notice{{corev1.EventTypeWarning, is.Reason, is.Message}}
	case is.Status != metav1.ConditionTrue:
		return nil
	}
	return success(r, was, is.Message)
}

// failure returns the Event of a run that ended with an error.
func failure(r Run, was, is *metav1.Condition) []Notice {
	switch reason := r.Outcome.Reason; {
	case was != nil && was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message:
		return nil
	case r.Revision == "" && reason == meta.ArtifactFailedReason:
		return nil // the source's loop emits events about its faults; the condition shows that this one waits for it
	case reason == meta.DependencyNotReadyReason, reason == meta.ProgressingReason, reason == siblings.ReasonHandingOver && !r.Undecided:
		return []Notice{{corev1.EventTypeNormal, reason, is.Message}}
	default:
		return []Notice{{corev1.EventTypeWarning, reason, is.Message}}
	}
}

// success returns the Event of a run after which the Kustomization is ready, with this message.
func success(r Run, was *metav1.Condition, message string) []Notice {
	changes := r.Changes
	if r.correctsDrift() {
		changes = "" // reported by an event of its own
	}
	succeeded := func(text string) []Notice {
		return []Notice{{corev1.EventTypeNormal, meta.ReconciliationSucceededReason, text}}
	}
	heard := was != nil && was.Reason == health.ReasonClusterSilent
	switch before := r.Before.Status; {
	case r.SameContent && changes == "" && !heard:
		return nil // a revision that changes nothing here
	case r.Anew && changes != "":
		as := cmp.Or(strings.TrimSuffix(" with "+r.Included, " with "), ", as what belongs to it changed")
		return succeeded(strings.Replace(message, r.Revision, r.Revision+as, 1) + " (" + changes + ")")
	case heard:
		return succeeded(strings.TrimSuffix(message+"; its health is known again ("+changes+")", " ()"))
	case was == nil || was.Status != metav1.ConditionTrue && was.Reason != inventory.ReasonDeletedAgain || before.LastAppliedRevision != r.Revision:
		return succeeded(strings.TrimSuffix(message+" ("+changes+")", " ()"))
	case changes != "" && len(inventory.Leaving(before)) > 0:
		return succeeded("Removed what had left revision " + r.Revision + ": " + changes)
	case changes != "":
		return []Notice{{corev1.EventTypeNormal, applier.ReasonDriftCorrected, "Brought back to revision " + r.Revision + ": " + changes + r.Repeated()}}
	default:
		return nil
	}
}
