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

// seen is a template that the revision does not have, as the hub has it; nil where that is not known.
func (c *check) seen(template *unstructured.Unstructured) *unstructured.Unstructured {
	id := inventory.IDOf(template)
	if out, read := c.world.there[id]; read || c.revision.Labels == nil {
		return out
	}
	labels, known, err := c.revision.Labels(template)
	c.unread = errors.Join(c.unread, err)
	c.world.there[id] = nil
	if known {
		out := template.DeepCopy()
		out.SetLabels(labels)
		c.world.there[id] = out
	}
	return c.world.there[id]
}
