package repository

import (
	"context"
	"errors"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/lineage"
	"github.com/flotilla-io/flotilla/sources/git"
)

// finding says that a commit is not known to follow the one before; it is empty
// where it does. warns is false where that was said before, too.
type finding struct {
	text  string
	warns bool
}

// follow is the phase that finds out whether the commit follows that of the
// artifact, where the same ref, or the same range of versions, has led to both.
func follow(ctx context.Context, s *state) (loop.Next, error) {
	object, holds := s.object, lineage.Holds(s.object)
	if object.Status.Artifact == nil || object.Spec.Reference != nil && object.Spec.Reference.Commit != "" {
		return loop.Next{}, nil
	}
	before, err := git.ParseRevision(object.Status.Artifact.Revision)
	now := s.commit.Revision()
	// What a person has changed since is meant; one who wants to be asked is asked.
	changed := object.Status.ObservedGeneration != object.Generation && !holds
	versions, ranged := rangeOf(object, before, now)
	if err != nil || changed || before.Pointer != now.Pointer && !ranged {
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
	next := "push a commit that does"
	if ranged {
		relation, next = versions.Relation(relation), "push a higher version that does, ask for the versions of one branch in spec.ref.semver, as 1.2.x"
	}
	s.history = finding{relation.Text(before.Short()), relation.Warns()}
	if relation == lineage.Ahead || !holds {
		return loop.Next{}, nil
	}
	why := fmt.Sprintf("%s; %s, or remove the annotation %s to take it", s.history.text, next, gitopsv1alpha1.RollbackProtectionAnnotation)
	held := lineage.Refused{Revision: now.String(), Why: why}
	return loop.Next{}, loop.Waiting(relation.Reason(), s.interval, errors.New(held.Message()))
}

// rangeOf returns the tags that a range of versions has led to, and false where it has not led to two that can be compared.
func rangeOf(object *sourcev1.GitRepository, before, now git.Revision) (lineage.Versions, bool) {
	ref := object.Spec.Reference
	if ref == nil || ref.Name != "" || ref.SemVer == "" || before.Pointer == now.Pointer {
		return lineage.Versions{}, false
	}
	v := lineage.Versions{Range: ref.SemVer, Was: before.Pointer, Is: now.Pointer}
	return v, v.Comparable()
}
