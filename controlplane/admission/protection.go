package admission

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

var errProtected = errors.New("This resource is protected, please make sure to remove the label: " + workv1alpha2.DeletionProtectionLabelKey) //nolint:staticcheck // the text is Karmada's

// Protection refuses to delete objects of any kind that are labelled as protected.
type Protection struct{ *admission.Handler }

var _ admission.ValidationInterface = Protection{}

// NewProtection returns the plugin.
func NewProtection() Protection { return Protection{admission.NewHandler(admission.Delete)} }

// Validate refuses the deletion of a protected object.
func (Protection) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" || a.GetOldObject() == nil {
		return nil
	}
	object, err := meta.Accessor(a.GetOldObject())
	if err != nil {
		return nil //nolint:nilerr // what has no metadata has no label
	}
	if object.GetLabels()[workv1alpha2.DeletionProtectionLabelKey] != workv1alpha2.DeletionProtectionAlways {
		return nil
	}
	return admission.NewForbidden(a, errProtected)
}
