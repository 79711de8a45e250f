package admission

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

// A Claimer returns the labels and annotations by which a new object says that a
// policy carries it; none if no policy does, or that is not known yet.
type Claimer func(ctx context.Context, gvk schema.GroupVersionKind, obj metav1.Object) (labels, annotations map[string]string)

// Claiming marks a new template in the write that makes it, which saves the loop
// that carries templates a write of its own. The loop stays the judge: what is
// not marked here, or wrongly, it mends.
type Claiming struct {
	*admission.Handler
	claim Claimer
}

var _ admission.MutationInterface = Claiming{}

// NewClaiming returns the plugin.
func NewClaiming(claim Claimer) Claiming {
	return Claiming{Handler: admission.NewHandler(admission.Create), claim: claim}
}

// Admit marks an object. One whose name the server has yet to make is left to
// the loop.
func (c Claiming) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" || a.GetName() == "" {
		return nil
	}
	obj, err := meta.Accessor(a.GetObject())
	if err != nil {
		return nil //nolint:nilerr // what has no metadata is no template
	}
	labels, annotations := c.claim(ctx, a.GetKind(), obj)
	if len(labels) > 0 {
		obj.SetLabels(over(obj.GetLabels(), labels))
	}
	if len(annotations) > 0 {
		obj.SetAnnotations(over(obj.GetAnnotations(), annotations))
	}
	return nil
}

func over(base, top map[string]string) map[string]string {
	out := maps.Clone(base)
	if out == nil {
		out = make(map[string]string, len(top))
	}
	maps.Copy(out, top)
	return out
}
