package poster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/origins"
	"github.com/flotilla-io/flotilla/sources/git"
)

// parentTime is for how long the Kustomization that applied a deleted one is waited for, to say that it has
// removed it.
const parentTime = 20 * time.Second

// retires begins what is posted about a commit that retires a Kustomization.
const retires = "retired by this commit: "

// lingerPoll is how often it is looked whether clusters have removed what a deleted Kustomization applied.
const lingerPoll = 3 * time.Second

// Remains reports what clusters still hold of what left Kustomizations.
type Remains interface {
	// Remaining returns those of the objects that clusters hold, as the named Kustomization applied them.
	Remaining(ctx context.Context, owner client.ObjectKey, removed []inventory.ID) ([]inventory.ID, error)
	// RemainingParts returns a part per object of these that the control plane does not hold any more.
	RemainingParts(ctx context.Context, owner client.ObjectKey, removed []inventory.ID) ([]rollup.Part, error)
}

// retirement finds out whether Kustomizations were removed by a commit, and what they applied with them.
type retirement struct {
	hub     client.Reader
	clock   clock.PassiveClock
	remains Remains // nil: clusters are not checked
}

// end finds out what is to be posted to the forge as a CommitStatus ends, about a commit whose status would stay
// pending. A commit that retires a Kustomization has come to its end with that, also where the Kustomization
// saw before that its folder is gone, and failed, or had posted nothing about that commit: what is required there is posted.
func (r retirement) end(ctx context.Context, s *state) (loop.Next, error) {
	last := s.before.Status.Posted
	if !s.ends() || last == nil {
		return loop.Next{}, nil
	}
	if last.State == gitopsv1alpha1.CommitPending {
		s.closing = &gitopsv1alpha1.PostedStatus{Commit: last.Commit, State: gitopsv1alpha1.CommitError, Description: "nothing more is told: what it is about is gone, or the Alert that told of it"}
		if last.Succeeded {
			s.closing.State = gitopsv1alpha1.CommitSuccess
		}
	}
	parent, holds, err := r.parent(ctx, s.before)
	if err != nil {
		return loop.Next{}, err
	}
	to, err := r.elsewhere(ctx, s.before)
	if err != nil {
		return loop.Next{}, err
	}
	if to != "" {
		return loop.Next{}, r.moved(ctx, s, parent, to)
	}
	if parent == nil {
		return loop.Next{}, nil
	}
	child := client.ObjectKey{Namespace: s.before.Namespace, Name: s.before.Spec.KustomizationRef.Name}
	gone, err := r.gone(ctx, child)
	if err != nil {
		return loop.Next{}, err
	}
	if holds {
		if (gone || last.State != gitopsv1alpha1.CommitSuccess) && r.clock.Since(s.before.DeletionTimestamp.Time) < parentTime {
			return loop.Next{Done: true, After: time.Second}, nil // its status may be about to change
		}
		return loop.Next{}, nil
	}
	revision, known, err := r.commit(ctx, parent)
	if err != nil || !known { // it is not at a commit
		return loop.Next{}, err
	}
	if revision.Checksum == last.Commit {
		if last.State == gitopsv1alpha1.CommitSuccess {
			return loop.Next{}, nil
		}
		return r.retired(ctx, s, parent, last.Commit)
	}
	posts := false
	if gone {
		if posts, err = r.reportsOn(ctx, s.before, parent); err != nil {
			return loop.Next{}, err
		}
	}
	switch {
	case s.closing != nil:
		s.closing.Description = "superseded by " + revision.Checksum[:shortCommit] + ", which retires the Kustomization"
		s.lingers = posts // for what is to be posted about that one
	case posts:
		return r.retired(ctx, s, parent, revision.Checksum)
	}
	return loop.Next{}, nil
}

// elsewhere returns the source that a Kustomization follows by now, if it is another one than that of the commits that the CommitStatus
// told of; else empty.
func (r retirement) elsewhere(ctx context.Context, cs *gitopsv1alpha1.CommitStatus) (string, error) {
	was := cs.Annotations[gitopsv1alpha1.FollowsAnnotation]
	if was == "" || cs.Spec.KustomizationRef == nil {
		return "", nil
	}
	ks := &kustomizev1.Kustomization{}
	if err := r.hub.Get(ctx, client.ObjectKey{Namespace: cs.Namespace, Name: cs.Spec.KustomizationRef.Name}, ks, client.UnsafeDisableDeepCopy); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if is := inventory.SourceOf(ks).String(); is != was {
		return is, nil
	}
	return "", nil
}

// moved says of a commit that is pending that the Kustomization follows another source by now: a success of the one that
// had it do so, as there is nothing more to come of it. parent is nil for none.
func (r retirement) moved(ctx context.Context, s *state, parent *kustomizev1.Kustomization, to string) error {
	if s.closing == nil || s.closing.State == gitopsv1alpha1.CommitSuccess {
		return nil
	}
	s.closing.Description = "nothing more is told: it follows " + to + " by now"
	if parent == nil {
		return nil
	}
	by, known, err := r.commit(ctx, parent)
	if err == nil && known && by.Checksum == s.closing.Commit {
		s.closing.State, s.closing.Description = gitopsv1alpha1.CommitSuccess, "this commit has it follow "+to
	}
	return err
}

// commit returns the commit that a Kustomization is at, and whether there is one.
func (r retirement) commit(ctx context.Context, ks *kustomizev1.Kustomization) (git.Revision, bool, error) {
	var artifact *meta.Artifact
	source, err := origins.Read(ctx, r.hub, inventory.SourceOf(ks))
	switch {
	case err == nil:
		artifact = source.GetArtifact()
	case !errors.Is(err, origins.ErrKind) && !apierrors.IsNotFound(err):
		return git.Revision{}, false, fmt.Errorf("read the source %s: %w", inventory.SourceOf(ks), err)
	}
	revision, err := git.ParseRevision(origins.Committed(ks, artifact, ks.Status.LastAttemptedRevision))
	return revision, err == nil, nil
}

// gone reports whether a Kustomization no longer exists.
func (r retirement) gone(ctx context.Context, key client.ObjectKey) (bool, error) {
	err := r.hub.Get(ctx, key, &kustomizev1.Kustomization{}, client.UnsafeDisableDeepCopy)
	return err != nil, client.IgnoreNotFound(err)
}

// reportsOn reports whether the one that applied a Kustomization posts about its commits in the same repository: these are those
// that the Kustomization posted about, and the one that retired it is among them.
func (r retirement) reportsOn(ctx context.Context, cs *gitopsv1alpha1.CommitStatus, parent *kustomizev1.Kustomization) (bool, error) {
	var list gitopsv1alpha1.CommitStatusList
	if err := r.hub.List(ctx, &list, client.InNamespace(parent.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list commit statuses: %w", err)
	}
	return slices.ContainsFunc(list.Items, func(of gitopsv1alpha1.CommitStatus) bool {
		return of.Spec.KustomizationRef != nil && of.Spec.KustomizationRef.Name == parent.Name && of.Spec.Repository == cs.Spec.Repository
	}), nil
}

// keeps returns why what a Kustomization applied stays.
var keeps = map[string]string{
	gitopsv1alpha1.KeepsUnpruned:  "it does not prune",
	gitopsv1alpha1.KeepsSuspended: "it was suspended",
	gitopsv1alpha1.KeepsOrphans:   "its deletionPolicy is Orphan",
}

// retired sums up what has become of the objects of a Kustomization that the commit retires. The commit stays pending for as
// long as a cluster has yet to remove some of it.
func (r retirement) retired(ctx context.Context, s *state, parent *kustomizev1.Kustomization, commit string) (loop.Next, error) {
	last := s.before.Status.Posted
	s.closing = &gitopsv1alpha1.PostedStatus{Commit: commit, State: gitopsv1alpha1.CommitSuccess, Description: retires + "what it applied is removed, or stays by its policy, or is applied by others"}
	if why := s.before.Annotations[gitopsv1alpha1.KeepsAnnotation]; why != "" {
		s.closing.Description = retires + "what it applied is left where it was, as " + cmp.Or(keeps[why], keeps[gitopsv1alpha1.KeepsUnpruned])
	}
	if r.remains == nil {
		return loop.Next{}, nil
	}
	child := client.ObjectKey{Namespace: s.before.Namespace, Name: s.before.Spec.KustomizationRef.Name}
	removed := slices.DeleteFunc(inventory.Removed(parent.Status), func(id inventory.ID) bool { return id.GroupKind == kustomizations })
	parts, err := r.remains.RemainingParts(ctx, child, removed)
	if err != nil {
		return loop.Next{}, err
	}
	waits, err := r.waits(ctx, child, parent)
	if err != nil {
		return loop.Next{}, err
	}
	if len(parts) == 0 {
		s.patient = waits && last.State == gitopsv1alpha1.CommitPending && strings.HasPrefix(last.Description, retires)
		left, err := r.remains.Remaining(ctx, child, removed)
		if len(left) > 0 {
			s.closing.Description = retires + "some of what it applied is left where it was: " + inventory.First(left, 1)
		}
		return loop.Next{}, err
	}
	if !waits {
		s.closing.State, s.closing.Description = gitopsv1alpha1.CommitError, retires+"it is not known to be removed: "+rollup.Revision(parts).Description
		return loop.Next{}, nil
	}
	s.lingers = true
	s.closing.State, s.closing.Description = gitopsv1alpha1.CommitPending, rollup.Sanitise(retires+rollup.Revision(parts).Description)
	if last.Commit == commit && last.State == s.closing.State && last.Description == s.closing.Description {
		s.closing = nil
		return loop.Next{Done: true, After: lingerPoll}, nil
	}
	return loop.Next{}, nil
}

// waits reports whether the end of a Kustomization can be waited for: one that is there again reports about itself, and
// what goes with its namespace must not hold that up.
func (r retirement) waits(ctx context.Context, child client.ObjectKey, parent *kustomizev1.Kustomization) (bool, error) {
	if parent.DeletionTimestamp != nil {
		return false, nil
	}
	if gone, err := r.gone(ctx, child); err != nil || !gone {
		return false, err
	}
	namespace := &corev1.Namespace{}
	if err := r.hub.Get(ctx, client.ObjectKey{Name: child.Namespace}, namespace); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return namespace.DeletionTimestamp == nil, nil
}

var kustomizations = kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind).GroupKind()

// parent returns the Kustomization that applied the one that a CommitStatus is about, or, where that goes too, the next one
// above, which knows the commit that retires both; nil for none. It also returns whether that still holds the one below it.
func (r retirement) parent(ctx context.Context, cs *gitopsv1alpha1.CommitStatus) (*kustomizev1.Kustomization, bool, error) {
	if cs.Spec.KustomizationRef == nil {
		return nil, false, nil
	}
	below := client.ObjectKey{Namespace: cs.Namespace, Name: cs.Spec.KustomizationRef.Name}
	for rest := cs.Annotations[gitopsv1alpha1.ParentAnnotation]; rest != ""; {
		var named string
		named, rest, _ = strings.Cut(rest, ",")
		namespace, name, _ := strings.Cut(named, "/")
		key, parent := client.ObjectKey{Namespace: namespace, Name: name}, &kustomizev1.Kustomization{}
		err := r.hub.Get(ctx, key, parent)
		if apierrors.IsNotFound(err) || err == nil && parent.DeletionTimestamp != nil && rest != "" {
			below = key
			continue
		}
		if err != nil {
			return nil, false, fmt.Errorf("read the Kustomization %s, below which %s was: %w", key, below, err)
		}
		owned, err := inventory.Here(parent)
		if err != nil {
			return nil, false, nil // its own loop reports that
		}
		return parent, slices.ContainsFunc(owned, func(e inventory.Entry) bool {
			return e.ID.GroupKind == kustomizations && e.ID.Namespace == below.Namespace && e.ID.Name == below.Name
		}), nil
	}
	return nil, false, nil
}
