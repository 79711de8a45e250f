package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/flotilla-io/flotilla/policies/propagation"
)

// A Claimer returns the claim of the policy that will propagate a new object, and false
// if none will, or if that is not known yet.
type Claimer func(ctx context.Context, gvk schema.GroupVersionKind, obj metav1.Object) (propagation.Claim, bool)

// Claiming sets the claim of a policy on a new template in the write that creates it,
// which saves the template loop a write of its own. The loop has the last word: it
// corrects claims that are missing or wrong.
type Claiming struct {
	*admission.Handler
	claim Claimer
}

var _ admission.MutationInterface = Claiming{}

// NewClaiming returns the plugin.
func NewClaiming(claim Claimer) Claiming {
	return Claiming{Handler: admission.NewHandler(admission.Create), claim: claim}
}

// Admit sets the claim on an object. An object whose name the server still has to generate
// is left to the loop.
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
