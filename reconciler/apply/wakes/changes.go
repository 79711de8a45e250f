package wakes

import (
	"context"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// Templates reports changes of templates, from the watches that other loops keep.
type Templates interface {
	Listen(l templatestore.Listener)
	// Get returns a template, and whether it is known to exist.
	Get(ctx context.Context, key templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error)
}

// Asked passes changes of the spec or the annotations of a Kustomization, which people make, and not of its
// status, which this loop writes.
func Asked() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
}

// NewArtifact passes a source that has a new artifact, or one that is verified only now.
func NewArtifact() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, okBefore := e.ObjectOld.(*sourcev1.GitRepository)
			after, okAfter := e.ObjectNew.(*sourcev1.GitRepository)
			if !okBefore || !okAfter || after.Status.Artifact == nil {
				return false
			}
			if provenance.Unverified(before) != "" && provenance.Unverified(after) == "" {
				return true
			}
			return before.Status.Artifact == nil || before.Status.Artifact.Revision != after.Status.Artifact.Revision || before.Status.Artifact.Digest != after.Status.Artifact.Digest
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}
