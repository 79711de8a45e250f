package watches

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-io/flotilla/reconciler/origins"
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

// NewArtifact passes a source that has a new artifact, or one that is verified only now. One that is on its way to the store is
// passed when it is there, or when it is known that it does not come.
func NewArtifact() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, okBefore := e.ObjectOld.(origins.Object)
			after, okAfter := e.ObjectNew.(origins.Object)
			if !okBefore || !okAfter || after.GetArtifact() == nil {
				return false
			}
			facts, factsBefore := origins.FactsOf(after), origins.FactsOf(before)
			switch {
			case facts.Fetching:
				return false
			case factsBefore.Fetching, factsBefore.Unverified != "" && facts.Unverified == "":
				return true
			}
			was, is := before.GetArtifact(), after.GetArtifact()
			return was == nil || was.Revision != is.Revision || was.Digest != is.Digest
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}
