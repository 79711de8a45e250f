package apply

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
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// notice is an event that a run emits about a Kustomization.
type notice struct{ kind, reason, message string }

// eventsOf returns the events of a run: for a transition of the condition Ready, for drift that was
// corrected, and for what is omitted. An outcome like the last one yields none.
func eventsOf(s *state, after *kustomizev1.Kustomization, outcome *loop.Error) []notice {
	notices := transitionOf(s, after, outcome)
	if changes := s.last.changes(); changes != "" && correctedDrift(s, outcome) {
		drift := notice{corev1.EventTypeNormal, applier.ReasonDriftCorrected, "Brought back to revision " + s.source.revision + ": " + changes + deletedRepeatedly(s)}
		notices = append([]notice{drift}, notices...)
	}
	if s.driftCorrected != "" {
		notices = append(notices, notice{corev1.EventTypeNormal, applier.ReasonDriftCorrected, "Brought back to revision " + lastgood.In(s.ks.Status).Revision +
			", which stays while " + s.source.revision + " is not applied: " + s.driftCorrected})
	}
	if s.owed.deleted != "" {
		notices = append(notices, notice{corev1.EventTypeNormal, meta.ReconciliationSucceededReason, "Removed what had left revision " + lastgood.In(s.ks.Status).Revision +
			", which stays while " + s.source.revision + " is not applied: " + s.owed.deleted})
	}
	if text := omitted(s); text != "" {
		notices = append(notices, notice{corev1.EventTypeWarning, applier.ReasonOmitted, "Not applied of revision " + s.source.revision + ": " + text})
	}
	return notices
}

// correctedDrift reports whether the changes of a run corrected drift: it applied a revision that this generation of the
// Kustomization had applied before, from the same artifact. Health is reported later.
func correctedDrift(s *state, outcome *loop.Error) bool {
	return isApplied(outcome) && !s.last.did.Anew && s.ks.Status.LastAppliedRevision == s.source.revision && s.ks.Status.ObservedGeneration == s.ks.Generation && len(inventory.Leaving(s.ks.Status)) == 0
}

// deletedRepeatedly returns a text about what others have deleted again and again; empty for nothing.
func deletedRepeatedly(s *state) string {
	s.last.mu.Lock()
	defer s.last.mu.Unlock()
	return s.last.returns.Message()
}

// omitted returns what of the revision is not applied as the files have it; empty if nothing, or once reported.
func omitted(s *state) string {
	s.last.mu.Lock()
	defer s.last.mu.Unlock()
	return s.last.did.Omits(s.omitted.String(), s.ks.Status.LastAppliedRevision == s.source.revision)
}

func transitionOf(s *state, after *kustomizev1.Kustomization, outcome *loop.Error) []notice {
	was := apimeta.FindStatusCondition(s.ks.Status.Conditions, meta.ReadyCondition)
	is := apimeta.FindStatusCondition(after.Status.Conditions, meta.ReadyCondition)
	switch {
	case is == nil:
		return nil
	case outcome != nil && was != nil && was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message:
		return nil
	case outcome != nil && s.source.revision == "" && outcome.Reason == meta.ArtifactFailedReason:
		return nil // the source's loop emits events about its faults; the condition shows that this one waits for it
	case outcome != nil && (outcome.Reason == meta.DependencyNotReadyReason || outcome.Reason == meta.ProgressingReason || outcome.Reason == siblings.ReasonHandingOver && len(s.stale.Undecided) == 0):
		return []notice{{corev1.EventTypeNormal, outcome.Reason, is.Message}}
	case outcome != nil:
		return []notice{{corev1.EventTypeWarning, outcome.Reason, is.Message}}
	case is.Reason == health.ReasonClusterSilent && (was == nil || was.Reason != is.Reason):
		return []notice{{corev1.EventTypeWarning, is.Reason, is.Message}}
	case is.Status != metav1.ConditionTrue:
		return nil
	}
	changes := s.last.changes()
	if correctedDrift(s, outcome) {
		changes = "" // reported by an event of its own
	}
	heard := was != nil && was.Reason == health.ReasonClusterSilent
	switch {
	case s.sameContent && changes == "" && !heard:
		return nil // a revision that changes nothing here
	case s.last.did.Anew && changes != "":
		as := cmp.Or(strings.TrimSuffix(" with "+s.source.included, " with "), ", as what belongs to it changed")
		return []notice{{corev1.EventTypeNormal, meta.ReconciliationSucceededReason, strings.Replace(is.Message, s.source.revision, s.source.revision+as, 1) + " (" + changes + ")"}}
	case heard:
		return []notice{{corev1.EventTypeNormal, meta.ReconciliationSucceededReason, strings.TrimSuffix(is.Message+"; its health is known again ("+changes+")", " ()")}}
	case was == nil || was.Status != metav1.ConditionTrue && was.Reason != inventory.ReasonDeletedAgain || s.ks.Status.LastAppliedRevision != s.source.revision:
		return []notice{{corev1.EventTypeNormal, meta.ReconciliationSucceededReason, strings.TrimSuffix(is.Message+" ("+changes+")", " ()")}}
	case changes != "" && len(inventory.Leaving(s.ks.Status)) > 0:
		return []notice{{corev1.EventTypeNormal, meta.ReconciliationSucceededReason, "Removed what had left revision " + s.source.revision + ": " + changes}}
	case changes != "":
		return []notice{{corev1.EventTypeNormal, applier.ReasonDriftCorrected, "Brought back to revision " + s.source.revision + ": " + changes + deletedRepeatedly(s)}}
	default:
		return nil
	}
}
