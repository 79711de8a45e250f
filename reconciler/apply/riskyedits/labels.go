package riskyedits

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// Templates reads resource templates from the watches that other loops keep.
type Templates interface {
	Get(ctx context.Context, key templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error)
}

// Labels returns the labels of a template that is not in the revision; known is false if they are not known.
type Labels func(template *unstructured.Unstructured) (labels map[string]string, known bool, err error)

// LabelsIn returns Labels that reads them from templates.
func LabelsIn(ctx context.Context, templates Templates) Labels {
	return func(template *unstructured.Unstructured) (map[string]string, bool, error) {
		there, presence, err := templates.Get(ctx, templatestore.KeyOf(template))
		if err != nil || presence != templatestore.Present {
			return nil, false, err
		}
		return there.GetLabels(), true, nil
	}
}

// others holds templates that are not in the revision, as the hub has them.
type others struct {
	read map[inventory.ID]*unstructured.Unstructured
	// unread joins the errors of reading them; nil for none.
	unread error
}

// of returns a template with its labels; nil if these are not known.
func (o *others) of(template *unstructured.Unstructured, by Labels) *unstructured.Unstructured {
	id := inventory.IDOf(template)
	if out, read := o.read[id]; read || by == nil {
		return out
	}
	labels, known, err := by(template)
	o.unread = errors.Join(o.unread, err)
	var out *unstructured.Unstructured
	if known {
		out = template.DeepCopy()
		out.SetLabels(labels)
	}
	if o.read == nil {
		o.read = map[inventory.ID]*unstructured.Unstructured{}
	}
	o.read[id] = out
	return out
}
