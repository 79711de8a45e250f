package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/flotilla-io/flotilla/policies/propagation"
)

// A Claimer returns the claim of the policy that will carry a new object, and
// false if none will, or that is not known yet.
type Claimer func(ctx context.Context, gvk schema.GroupVersionKind, obj metav1.Object) (propagation.Claim, bool)

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
	if claim, ok := c.claim(ctx, a.GetKind(), obj); ok {
		claim.Set(obj)
	}
	return nil
}
