package apply

import (
	"cmp"
	"slices"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// reasonFailed is the reason of an error that may pass by itself.
const reasonFailed = meta.ReconciliationFailedReason

// hide returns a text as it may be shown, without values from Secrets and credentials of addresses. It keeps the names of
// revisions, even if they contain such a value.
func (s *state) hide(text string) string {
	return excerpt.WithoutCredentials(s.last.secrets.Hide(text, s.revisions()...))
}

// clean does for an error what hide does for a text; reason is for an error without one.
func (s *state) clean(err error, reason string) error {
	return s.last.secrets.Clean(err, reason, s.revisions()...)
}

func (s *state) revisions() []string {
	return []string{s.source.revision, s.ks.Status.LastAppliedRevision, s.ks.Status.LastAttemptedRevision, lastgood.In(s.ks.Status).Revision}
}

// statusOf returns the status after a run; outcome is nil for a run without an error.
func statusOf(s *state, outcome *loop.Error, now time.Time) kustomizev1.KustomizationStatus {
	status := s.ks.Status.DeepCopy()
	c := kustomizations.Conditions{List: &status.Conditions, Generation: s.ks.Generation, Now: metav1.NewTime(now)}
	if s.switchover.done {
		c.Remove(revisiongate.Condition)
	}
	if is := apimeta.FindStatusCondition(status.Conditions, revisiongate.Condition); is != nil && s.switchover.waits {
		c.Set(revisiongate.Condition, metav1.ConditionTrue, revisiongate.ReasonWritten, is.Message)
	}
	switch {
	case outcome != nil:
		failed(c, status, s, outcome)
	case s.waiting.text != "":
		progressing(c, status, s)
	case s.stale.Waits():
		handingOver(c, status, s)
	default:
		succeeded(c, status, s)
	}
	// A refused revision records nothing new here: what earlier ones were allowed to delete is still leaving.
	inventory.RecordLeaving(status, inventory.IDsOf(slices.Concat(s.stale.Staying(), s.stale.retained)), inventory.IDsOf(s.stale.Staying()), s.stale.known && !s.stale.refused)
	if s.ks.DeletionTimestamp != nil {
		inventory.RecordUndecided(status, s.stale.undecided)
	}
	s.stale.terminating.Record(status)
	// Drift is corrected from a revision that was applied as a whole; one that was applied in part only counts for the limits.
	before := lastgood.In(s.ks.Status)
	switch {
	case s.current || s.writes == whole:
		lastgood.Write(status, lastgood.Record{Revision: s.source.revision, Artifact: s.source.digest, Objects: cmp.Or(s.digest, before.Objects), Bytes: cmp.Or(s.bytes, before.Bytes), Commit: s.source.commit, Sources: before.Followed(s.source.Source, s.stale.Waits() || len(s.stale.retained) > 0)})
		inventory.RecordEdited(status, nil)
	case s.writes == part:
		lastgood.Write(status, lastgood.Record{Bytes: max(s.bytes, before.Bytes), Sources: before.Followed(s.source.Source, true)})
	}
	if s.writes != none {
		inventory.RecordPlace(status, s.diff.at.Place)
	}
	if len(s.taken) > 0 {
		inventory.Drop(status, s.taken)
	}
	if s.source.revision != "" && !s.unchanged && !s.waitsAsBefore {
		status.LastAttemptedRevision = s.source.revision
	}
	// A request is handled when its run is over, as whoever sent it waits for the result.
	if outcome != nil || s.waiting.text == "" && len(s.stale.Passing) == 0 || s.waiting.silent {
		if token, ok := meta.ReconcileAnnotationValue(s.ks.Annotations); ok {
			status.LastHandledReconcileAt = token
		}
	}
	return *status
}

// applyingStatus returns the status before new objects are written. Its inventory already
// has them, so that a crash in between leaves no object without an owner.
func applyingStatus(s *state, now time.Time) kustomizev1.KustomizationStatus {
	status := s.ks.Status.DeepCopy()
	c := kustomizations.Conditions{List: &status.Conditions, Generation: s.ks.Generation, Now: metav1.NewTime(now)}
	message := "Applying revision " + s.source.revision
	c.Remove(meta.StalledCondition)
	c.Set(meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingReason, message)
	c.Set(meta.ReadyCondition, metav1.ConditionUnknown, meta.ProgressingReason, message)
	if status.LastAttemptedRevision != s.source.revision {
		c.Remove(meta.HealthyCondition) // the timeout of the new revision counts from now: see health.Deadline
	}
	status.Inventory = inventory.Record(inventory.Union(s.diff.owned, s.desired))
	status.LastAttemptedRevision = s.source.revision
	if s.diff.at.Remote() && len(status.History) == 0 { // where the objects are is written beside an outcome
		kustomizations.Remember(status, outcomeOf(s, meta.ProgressingReason, now))
	}
	inventory.RecordPlace(status, s.diff.at.Place)
	return *status
}

func succeeded(c kustomizations.Conditions, status *kustomizev1.KustomizationStatus, s *state) {
	c.Remove(meta.ReconcilingCondition)
	c.Remove(meta.StalledCondition)
	message := "Applied revision: " + s.source.revision + s.waiting.aside + s.staying()
	if s.current && readyAt(s) && !s.waiting.assessed { // keep the message
		message = apimeta.FindStatusCondition(status.Conditions, meta.ReadyCondition).Message
	} else {
		healthIsKnown(c, s)
	}
	c.Set(meta.ReadyCondition, metav1.ConditionTrue, meta.ReconciliationSucceededReason, s.stale.terminating.Describe(message))
	status.ObservedGeneration = s.ks.Generation
	status.LastAppliedRevision = s.source.revision
	status.LastAppliedOriginRevision = s.source.origin
	if !s.current {
		status.Inventory = s.record()
	}
	kustomizations.Remember(status, outcomeOf(s, meta.ReconciliationSucceededReason, c.Now.Time))
}

// staying returns a text about what left a revision and is kept until that is applied everywhere; empty if nothing.
func (s *state) staying() string {
	if len(s.stale.retained) == 0 {
		return ""
	}
	out := "; what left it stays until all of it is applied in its cluster: " + inventory.First(inventory.IDsOf(s.stale.retained), namedUnhealthy)
	if s.stale.nowhere != "" {
		out += "; " + s.stale.nowhere
	}
	return out
}

func progressing(c kustomizations.Conditions, status *kustomizev1.KustomizationStatus, s *state) {
	kustomizations.Written(status, outcomeOf(s, meta.ProgressingReason, c.Now.Time))
	reason := meta.ProgressingReason
	if s.waiting.silent {
		reason = health.ReasonClusterSilent
	}
	c.Remove(meta.StalledCondition)
	c.Set(meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingReason, s.waiting.text)
	c.Set(meta.ReadyCondition, metav1.ConditionUnknown, reason, s.waiting.text)
	had := apimeta.FindStatusCondition(status.Conditions, meta.HealthyCondition)
	if status.LastAttemptedRevision != s.source.revision || had != nil && had.Reason == health.ReasonClusterSilent && !s.waiting.silent {
		c.Remove(meta.HealthyCondition) // so that its transition time, from which the timeout counts, is new
	}
	c.Set(meta.HealthyCondition, metav1.ConditionUnknown, reason, s.waiting.text)
	if !s.current {
		status.Inventory = s.record()
	}
}

// handingOver sets the conditions of a revision that is applied while siblings have yet to take over what left it.
func handingOver(c kustomizations.Conditions, status *kustomizev1.KustomizationStatus, s *state) {
	message := excerpt.Message("Applied revision "+s.source.revision+"; "+s.stale.String(), kustomizev1.MaxConditionMessageLength)
	c.Remove(meta.StalledCondition)
	c.Set(meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingReason, message)
	c.Set(meta.ReadyCondition, metav1.ConditionUnknown, siblings.ReasonHandingOver, message)
	healthIsKnown(c, s)
	status.Inventory = s.record()
}

func healthIsKnown(c kustomizations.Conditions, s *state) {
	if !health.Checked(s.ks) {
		c.Remove(meta.HealthyCondition)
		return
	}
	c.Set(meta.HealthyCondition, metav1.ConditionTrue, meta.SucceededReason, "All objects are healthy"+s.waiting.aside)
}

// record returns the inventory of a revision that is applied: its objects, and what left it and is still owned.
func (s *state) record() *kustomizev1.ResourceInventory {
	return inventory.Record(inventory.Union(inventory.Union(s.stale.Staying(), s.stale.retained), s.desired))
}

func failed(c kustomizations.Conditions, status *kustomizev1.KustomizationStatus, s *state, outcome *loop.Error) {
	message := excerpt.Message(egress.Message(outcome), kustomizev1.MaxConditionMessageLength)
	first := s.source.revision != "" && status.LastAttemptedRevision != s.source.revision || outcome.Reason == meta.DependencyNotReadyReason
	if first && !apimeta.IsStatusConditionTrue(status.Conditions, meta.HealthyCondition) {
		c.Remove(meta.HealthyCondition) // the timeout counts only once the revision is applied
	}
	if c.Failed(outcome, message, outcome.Reason == meta.ProgressingReason || outcome.Reason == siblings.ReasonHandingOver); outcome.Class == loop.ClassStalled {
		status.ObservedGeneration = s.ks.Generation
	}
	if outcome.Reason == meta.HealthCheckFailedReason {
		c.Set(meta.HealthyCondition, metav1.ConditionFalse, outcome.Reason, message)
		if !s.current {
			status.Inventory = s.record()
		}
	}
	if outcome.Class != loop.ClassRetry && outcome.Reason != meta.DependencyNotReadyReason && outcome.Reason != inventory.ReasonDeletedAgain {
		kustomizations.Remember(status, outcomeOf(s, outcome.Reason, c.Now.Time))
	}
}

// outcomeOf returns the outcome of the run as the history records it.
func outcomeOf(s *state, reason string, now time.Time) kustomizations.Outcome {
	return kustomizations.Outcome{Digest: s.digest, Revision: s.source.revision, Origin: s.source.origin, Reason: reason, Commit: s.source.commit, Begun: s.now, Now: now, Anew: s.ks.Status.ObservedGeneration != s.ks.Generation}
}
