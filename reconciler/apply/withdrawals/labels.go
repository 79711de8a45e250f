package withdrawals

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// Templates are the resource templates that somebody keeps a watch on.
type Templates interface {
	Get(ctx context.Context, key templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error)
}

// Labels are those of a template that a revision does not have; known is false where it is not known which these are.
type Labels func(template *unstructured.Unstructured) (labels map[string]string, known bool, err error)

// LabelsIn reads labels of templates.
func LabelsIn(ctx context.Context, templates Templates) Labels {
	return func(template *unstructured.Unstructured) (map[string]string, bool, error) {
		there, presence, err := templates.Get(ctx, templatestore.KeyOf(template))
		if err != nil || presence != templatestore.Present {
			return nil, false, err
		}
		return there.GetLabels(), true, nil
	}
}

// others are templates that a revision does not have, as the hub has them.
type others struct {
	read map[inventory.ID]*unstructured.Unstructured
	// unread is why some are not known.
	unread error
}

// of returns a template with its labels; nil where these are not known.
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
