package repository

import (
	"context"
	"errors"
	"fmt"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/lineage"
	"github.com/flotilla-io/flotilla/sources/git"
)

// finding says that a commit is not known to follow the one before; it is empty
// where it does. reason is empty where that was said before.
type finding struct{ reason, text string }

// follow is the phase that finds out whether the commit follows that of the
// artifact, where the same ref has led to both.
func follow(ctx context.Context, s *state) (loop.Next, error) {
	object, holds := s.object, lineage.Holds(s.object)
	if object.Status.Artifact == nil || object.Spec.Reference != nil && object.Spec.Reference.Commit != "" {
		return loop.Next{}, nil
	}
	before, err := git.ParseRevision(object.Status.Artifact.Revision)
	now := s.commit.Revision()
	// What a person has changed since is meant; one who wants to be asked is asked.
	changed := object.Status.ObservedGeneration != object.Generation && !holds
	if err != nil || before.Pointer != now.Pointer || changed {
		return loop.Next{}, nil
	}
	if before.Checksum == now.Checksum { // also of another selection of files
		s.history.text = object.Status.Artifact.Metadata[gitopsv1alpha1.HistoryKey]
		return loop.Next{}, nil
	}
	relation, err := git.Compare(ctx, s.remote, before.Checksum, s.commit)
	if err != nil && holds {
		return loop.Next{}, s.classify(err)
	}
	s.history = finding{relation.Reason(), relation.Text(before.Short())}
	if relation == lineage.Ahead || !holds {
		return loop.Next{}, nil
	}
	why := fmt.Sprintf("%s; push a commit that does, or remove the annotation %s to take it", s.history.text, gitopsv1alpha1.RollbackProtectionAnnotation)
	held := lineage.Refused{Revision: now.String(), Why: why}
	return loop.Next{}, loop.Waiting(relation.Reason(), s.interval, errors.New(held.Message()))
}
