package poster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/git"
)

// parentTime is for how long the Kustomization that applied a deleted one is waited for, to say that it has
// removed it.
const parentTime = 20 * time.Second

// retirement knows whether Kustomizations are gone because a commit says so.
type retirement struct {
	hub   client.Reader
	clock clock.PassiveClock
}

// end finds out what the forge is to be told as a CommitStatus ends, of a commit whose status would stay
// pending. A commit that retires a Kustomization has come to its end with that, also where the Kustomization
// saw before that its folder is gone, and failed.
func (r retirement) end(ctx context.Context, s *state) (loop.Next, error) {
	last := s.before.Status.Posted
	if !s.ends() || last == nil || last.State == gitopsv1alpha1.CommitSuccess {
		return loop.Next{}, nil
	}
	if last.State == gitopsv1alpha1.CommitPending {
		s.closing = &gitopsv1alpha1.PostedStatus{Commit: last.Commit, State: gitopsv1alpha1.CommitError, Description: "nothing more is told: what it is about is gone, or the Alert that told of it"}
		if last.Succeeded {
			s.closing.State = gitopsv1alpha1.CommitSuccess
		}
	}
	parent, holds, err := r.parent(ctx, s.before)
	if err != nil || parent == nil {
		return loop.Next{}, err
	}
	if holds {
		if r.clock.Since(s.before.DeletionTimestamp.Time) < parentTime {
			return loop.Next{Done: true, After: time.Second}, nil // it may be about to say that it does not
		}
		return loop.Next{}, nil
	}
	switch revision, err := git.ParseRevision(parent.Status.LastAttemptedRevision); {
	case err != nil: // it is not at a commit
	case revision.Checksum == last.Commit:
		s.closing = &gitopsv1alpha1.PostedStatus{Commit: last.Commit, State: gitopsv1alpha1.CommitSuccess, Description: "retired by this commit: what it applied is removed, or applied by others"}
	case s.closing != nil:
		s.closing.Description = "superseded by " + revision.Checksum[:shortCommit] + ", which retires the Kustomization"
	}
	return loop.Next{}, nil
}

// parent returns the Kustomization that applied the one that a CommitStatus is about, nil for none, and
// whether it still holds that.
func (r retirement) parent(ctx context.Context, cs *gitopsv1alpha1.CommitStatus) (*kustomizev1.Kustomization, bool, error) {
	namespace, name, named := strings.Cut(cs.Annotations[gitopsv1alpha1.ParentAnnotation], "/")
	if !named || cs.Spec.KustomizationRef == nil {
		return nil, false, nil
	}
	parent := &kustomizev1.Kustomization{}
	if err := r.hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, parent); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return nil, false, fmt.Errorf("read the Kustomization that applied %s: %w", cs.Spec.KustomizationRef.Name, err)
		}
		return nil, false, nil
	}
	owned, err := inventory.Read(parent.Status.Inventory)
	if err != nil {
		return nil, false, nil // its own loop says so
	}
	kind := kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind).GroupKind()
	return parent, slices.ContainsFunc(owned, func(e inventory.Entry) bool {
		return e.ID.GroupKind == kind && e.ID.Namespace == cs.Namespace && e.ID.Name == cs.Spec.KustomizationRef.Name
	}), nil
}
