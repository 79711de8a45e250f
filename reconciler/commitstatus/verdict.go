package commitstatus

import (
	"context"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/refusals"
	"github.com/flotilla-io/flotilla/sources/git"
)

// verdict is what is to be reported of a commit.
type verdict struct {
	// revision is the one that was tried last, and changed the one that it changed something with.
	revision, changed string
	state             gitopsv1alpha1.CommitState
	description       string
	clusters          *gitopsv1alpha1.ClusterCount
	places            []rollup.Place
	// unknown says that some of it has not been looked at yet, as after a restart.
	unknown bool
	// replaced says that another revision takes its place: the members may run that one.
	replaced bool
}

// stands reports whether what was reported of a commit is not to be changed: what is not
// known changes nothing, and what the next one runs is none of this one.
func stands(have *gitopsv1alpha1.CommitStatus, v verdict, commit string) bool {
	if have.Spec.Commit != commit {
		return false
	}
	return v.replaced || v.unknown && have.Spec.State != gitopsv1alpha1.CommitPending
}

// passing are the reasons for which a revision is not applied, but may be
// without anybody doing anything, or once somebody approves of it.
var passing = []string{
	refusals.ApprovalMissing,
	meta.ReconciliationFailedReason, meta.ProgressingReason, meta.DependencyNotReadyReason, meta.PruneFailedReason, meta.ArtifactFailedReason,
	inventory.ReasonDeletedAgain, inventory.ReasonNamespaceTerminating,
}

// judge decides what to report of the commit that a Kustomization is at. Where it is at
// none, there is nothing to put a status on.
func (r *Reconciler) judge(ctx context.Context, s *state) (loop.Next, error) {
	if commitOf(s.committed(s.ks.Status.LastAttemptedRevision)) == "" {
		return loop.Next{Done: true}, nil
	}
	if source, ok := followedBy(s.ks); !ok || source.Namespace != s.ks.Namespace && !r.opts.AllowCrossNamespace {
		return loop.Next{Done: true}, nil // which may not be read, so that it is at none: the one before is none of this
	}
	s.verdict = verdict{revision: s.ks.Status.LastAttemptedRevision, changed: changed(s.ks)}
	v := &s.verdict
	for i := range s.targets {
		t := &s.targets[i]
		revision := v.revisionFor(*t, s.existing[t.name], commitOf(s.committed(v.changed)))
		t.at(revision, s.committed(revision))
	}
	entries, err := inventory.Here(s.ks)
	if err != nil {
		return loop.Next{}, err
	}
	leaving := inventory.Leaving(s.ks.Status) // and owned until it goes
	entries = slices.DeleteFunc(entries, func(e inventory.Entry) bool { return slices.Contains(leaving, e.ID) })
	removed := append(inventory.Removed(s.ks.Status), leaving...)
	r.followed.own(s.key, entries, removed) // before anything is read: what changes afterwards enqueues it again
	since, err := r.asksSince(ctx, s.ks)
	if err != nil {
		return loop.Next{}, err
	}
	if v.state, v.description = byConditions(s.ks, since); v.state != "" {
		if v.state == gitopsv1alpha1.CommitPending && s.ks.Spec.Suspend {
			v.state, v.description = gitopsv1alpha1.CommitError, "not applied: the Kustomization is suspended"
		}
		return loop.Next{}, nil
	}
	parts, err := r.gatherer.Parts(ctx, s.key, entries)
	if err != nil {
		return loop.Next{}, err
	}
	left, err := r.left(ctx, s, removed)
	if err != nil {
		return loop.Next{}, err
	}
	parts = append(append(parts, left...), edited(s.ks)...)
	source, err := sourceOf(ctx, r.hub, s.ks, r.opts.AllowCrossNamespace) // after the parts: who has applied the next one read it there before
	if err != nil {
		return loop.Next{}, err
	}
	if next := successor(s.ks, source); next != "" {
		v.state, v.description, v.replaced = gitopsv1alpha1.CommitPending, next+" takes its place", true
		return loop.Next{}, nil
	}
	all := rollup.Revision(parts)
	v.state, v.description = byRollup(s.ks, all, len(parts), len(entries))
	if all.Total > 0 {
		v.clusters = countOf(all)
	}
	v.places = rollup.Places(parts)
	v.unknown = slices.ContainsFunc(parts, func(p rollup.Part) bool { return p.Unread })
	return loop.Next{}, nil
}

// revisionFor is the revision whose commit is reported to a target: the one that changed something, unless every
// commit is asked for, or a later one was reported already. A new target gets the current one. commit is that of what changed
// something.
func (v verdict) revisionFor(t target, have *gitopsv1alpha1.CommitStatus, commit string) string {
	if have == nil || every(t.alert) || have.Spec.Commit != commit {
		return v.revision // never back to an older one: what was reported may be of a commit that was tried since
	}
	return v.changed
}

// every reports whether an Alert asks for a status of each commit.
func every(alert *notificationv1beta3.Alert) bool {
	return alert.Annotations[gitopsv1alpha1.CommitStatusesAnnotation] == gitopsv1alpha1.CommitStatusesAll
}

// commitOf is the commit of a revision of a repository; empty if it is none. Of that of an artifact it is what distinguishes it from others.
func commitOf(text string) string {
	revision, err := git.ParseRevision(text)
	if err != nil {
		return ""
	}
	return revision.Checksum
}

// byConditions judges by what the apply came to. No state means that the
// revision stands on the hub, so that the members have the word. since says that what is refused was asked for since
// the revision was applied: a later commit may have it, or mend it.
func byConditions(ks *kustomizev1.Kustomization, since bool) (gitopsv1alpha1.CommitState, string) {
	ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
	healthy := apimeta.FindStatusCondition(ks.Status.Conditions, meta.HealthyCondition)
	switch {
	case ready == nil:
		return gitopsv1alpha1.CommitPending, "waiting to be applied"
	case ready.Reason == meta.HealthCheckFailedReason:
		return "", ""
	case ready.Status == metav1.ConditionTrue && ks.Status.LastAppliedRevision == ks.Status.LastAttemptedRevision, waitsUnchanged(ks, ready):
		return "", ""
	case ready.Status == metav1.ConditionUnknown && healthy != nil && healthy.Reason == ready.Reason && healthy.Message == ready.Message:
		return "", "" // applied, and its health is being waited for
	case since:
		return gitopsv1alpha1.CommitPending, ready.Reason + ": " + ready.Message
	case ready.Status == metav1.ConditionFalse && !slices.Contains(passing, ready.Reason):
		return gitopsv1alpha1.CommitError, ready.Reason + ": " + ready.Message
	default:
		return gitopsv1alpha1.CommitPending, ready.Message
	}
}

// waitsUnchanged reports whether a Kustomization waits for a dependency, and stands as it is now: nothing of it
// has yet to be applied, and nothing was tried since that.
func waitsUnchanged(ks *kustomizev1.Kustomization, ready *metav1.Condition) bool {
	status, last := &ks.Status, ks.Status.History.Latest()
	return ready.Reason == meta.DependencyNotReadyReason && status.LastAppliedRevision != "" && status.LastAppliedRevision == status.LastAttemptedRevision &&
		status.ObservedGeneration == ks.Generation && (last == nil || last.Metadata["revision"] == status.LastAppliedRevision)
}

// byRollup judges by how the members fare.
func byRollup(ks *kustomizev1.Kustomization, all rollup.Rollup, parts, owned int) (gitopsv1alpha1.CommitState, string) {
	state, description := states[all.State], all.Description
	if ks.Spec.Suspend && parts > 0 {
		return state, description // nobody looks at health any more: what clusters say is all there is
	}
	if parts == 0 {
		state, description = gitopsv1alpha1.CommitSuccess, nothingSent(ks, owned)
	}
	failed := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
	if failed != nil && failed.Reason == meta.HealthCheckFailedReason && state != gitopsv1alpha1.CommitFailure {
		if state == gitopsv1alpha1.CommitSuccess {
			description = failed.Message
		}
		return gitopsv1alpha1.CommitFailure, description
	}
	waits := failed != nil && failed.Status == metav1.ConditionUnknown
	if waits && state == gitopsv1alpha1.CommitSuccess {
		return gitopsv1alpha1.CommitPending, description + "; " + failed.Message
	}
	return state, description
}

// nothingSent says of a revision of which nothing goes to clusters of the fleet where it is applied.
func nothingSent(ks *kustomizev1.Kustomization, owned int) string {
	if place := inventory.PlaceOf(ks.Status); place != (inventory.Place{}) {
		return fmt.Sprintf("applied %s, outside of the fleet", place)
	}
	if owned == 1 {
		return "applied 1 object on the control plane, which goes to no cluster"
	}
	return fmt.Sprintf("applied %d objects on the control plane, none of which goes to a cluster", owned)
}

// states are a rollup's states.
var states = map[string]gitopsv1alpha1.CommitState{
	rollup.StatePending: gitopsv1alpha1.CommitPending,
	rollup.StateSuccess: gitopsv1alpha1.CommitSuccess,
	rollup.StateFailure: gitopsv1alpha1.CommitFailure,
}

// ofThis returns a text that stands at a commit: it need not name that, and has no room to, nor for other commits in full.
func ofThis(text, revision string) string {
	return excerpt.Revisions(strings.ReplaceAll(text, "revision "+revision, "this commit"))
}

// describe returns a text that stands at the commit of a revision as a line that a type of Providers takes: with what allows
// that commit to go on, where that is how it ends.
func describe(text, revision, provider string) string {
	longest := rollup.MaxDescription
	if provider == gitopsv1alpha1.ProviderTypeGitNotes {
		longest = rollup.MaxNote
	}
	return rollup.SanitiseTo(ofThis(text, revision), longest)
}

// desired returns the CommitStatus that a target is to have.
func (r *Reconciler) desired(of *state, t target, contextName string) *gitopsv1alpha1.CommitStatus {
	ks, v := of.ks, of.verdict
	cs := &gitopsv1alpha1.CommitStatus{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ks.Namespace, Name: t.name, Finalizers: []string{gitopsv1alpha1.CommitStatusFinalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ks, kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind))},
		},
		Spec: gitopsv1alpha1.CommitStatusSpec{
			ProviderRef:      gitopsv1alpha1.LocalReference{Name: t.provider.Name},
			KustomizationRef: &gitopsv1alpha1.LocalReference{Name: ks.Name},
			Repository:       t.repository,
			Context:          contextName,
			Commit:           t.commit,
			State:            v.state,
			Description:      describe(v.description, t.revision, t.provider.Spec.Type),
			Clusters:         v.clusters,
		},
	}
	if t.comments() {
		cs.Spec.ClusterStates = statesOf(v.places)
	}
	cs.Annotations = map[string]string{gitopsv1alpha1.FollowsAnnotation: inventory.SourceOf(ks).String()}
	if len(of.parents) > 0 {
		cs.Annotations[gitopsv1alpha1.ParentAnnotation] = strings.Join(of.parents, ",")
		if why := inventory.Keeps(ks); why != "" {
			cs.Annotations[gitopsv1alpha1.KeepsAnnotation] = why
		}
	}
	if r.opts.TargetURL != "" {
		cs.Spec.TargetURL = strings.TrimRight(r.opts.TargetURL, "/") + "/" + ks.Namespace + "/" + ks.Name
	}
	return cs
}
