package ocirepository

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/lineage"
	"github.com/flotilla-io/flotilla/sources/oci"
)

// createdAnnotation is the annotation of a manifest that says when the artifact was made.
const createdAnnotation = wellKnown + "created"

// follow finds out whether what the tag has now is newer than the artifact, where the same tag or the same range of versions has led to both.
func (r *Reconciler) follow(ctx context.Context, s *state) (loop.Next, error) {
	have, ref := s.object.Status.Artifact, s.object.Spec.Reference
	if have == nil || ref != nil && ref.Digest != "" {
		return loop.Next{}, nil
	}
	if have.Revision == s.target.Revision() { // also of another selection of files
		s.history = have.Metadata[gitopsv1alpha1.HistoryKey]
		return loop.Next{}, nil
	}
	was, err := oci.ParseRevision(have.Revision)
	holds := lineage.HoldsIn(s.object.Annotations)
	// What a person has changed since is meant; one who wants to be asked is asked.
	changed := s.object.Status.ObservedGeneration != s.object.Generation && !holds
	if err != nil || changed || was.Tag != s.target.Tag && !ranged(ref, was.Tag, s.target.Tag) {
		return loop.Next{}, nil
	}
	manifest, err := s.remote.Manifest(ctx, s.target.Digest)
	if err != nil {
		return loop.Next{}, s.classify(err)
	}
	s.read = &read{s.target.Digest, manifest}
	now := lineage.Packed{Tag: s.target.Tag, Created: manifest.Annotations[createdAnnotation]}
	before := lineage.Packed{Tag: was.Tag, Created: have.Metadata[createdAnnotation]}
	relation := now.Follows(before)
	text := excerpt.Line(now.Text(relation, before, have.Revision))
	if relation == lineage.Behind {
		s.history = text
	}
	if relation == lineage.Ahead || !holds {
		return loop.Next{}, nil
	}
	why := fmt.Sprintf("%s; push a newer one, or remove the annotation %s to take it", text, gitopsv1alpha1.RollbackProtectionAnnotation)
	held := lineage.Refused{Revision: s.target.Revision(), Why: why}
	return loop.Next{}, loop.Waiting(relation.Reason(), s.interval, errors.New(held.Message()))
}

// ranged reports whether a range of versions has led to both tags. A filter of tags that the earlier one does not pass is another range.
func ranged(ref *sourcev1.OCIRepositoryRef, was, is string) bool {
	if ref == nil || ref.SemVer == "" {
		return false
	}
	if filter, err := regexp.Compile(ref.SemverFilter); err != nil || !filter.MatchString(was) {
		return false
	}
	return lineage.Versions{Range: ref.SemVer, Was: was, Is: is}.Comparable()
}

// read is a manifest that was read.
type read struct {
	digest   string
	manifest oci.Manifest
}

// manifest returns the manifest of a digest.
func (s *state) manifest(ctx context.Context, digest string) (oci.Manifest, error) {
	if s.read != nil && s.read.digest == digest {
		return s.read.manifest, nil
	}
	return s.remote.Manifest(ctx, digest)
}
