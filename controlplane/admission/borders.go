package admission

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/admission"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Borders keeps the bindings of a namespace to its templates. Who may write there
// would otherwise have anything of the control plane sent to members, Secrets of
// others among it.
type Borders struct{ *admission.Handler }

var _ admission.ValidationInterface = (*Borders)(nil)

// NewBorders returns the plugin.
func NewBorders() *Borders {
	return &Borders{admission.NewHandler(admission.Create, admission.Update)}
}

// Validate refuses a binding of somebody else's template, from all but those who
// may write any object.
func (p *Borders) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	b, ok := a.GetObject().(*workv1alpha2.ResourceBinding)
	if !ok || a.GetSubresource() != "" || MayBringIdentity(a.GetUserInfo()) {
		return nil
	}
	ref := &b.Spec.Resource
	if ref.Namespace == b.Namespace {
		return nil
	}
	if old, ok := a.GetOldObject().(*workv1alpha2.ResourceBinding); ok && sameTemplate(&old.Spec.Resource, ref) {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf("spec.resource.namespace: it is %q, a binding is of a template in its own namespace, %s", ref.Namespace, b.Namespace))
}

func sameTemplate(a, b *workv1alpha2.ObjectReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name
}
