package admission

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/flotilla-io/flotilla/policies/access"
)

// Names keeps the names by which members know the control plane's users, and what it
// grants them there, to the control plane and its administrators: a Role or binding
// that has them is a template like any other.
type Names struct{ *admission.Handler }

var _ admission.ValidationInterface = Names{}

// NewNames returns the plugin.
func NewNames() Names { return Names{admission.NewHandler(admission.Create, admission.Update)} }

// Validate refuses a Role or binding with such a name, in its subjects or what it lets
// impersonate as well.
func (Names) Validate(_ context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if !access.Gives(a.GetKind().GroupKind()) || a.GetSubresource() != "" || MayBringIdentity(a.GetUserInfo()) {
		return nil
	}
	grant, err := grantOf(a, o)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if field, name := grant.OwnName(); field != "" {
		return admission.NewForbidden(a, fmt.Errorf("%s: %q begins with flotilla:, as the names by which members know users of the control plane and their rights: take another name", field, name))
	}
	return nil
}

// grantOf reads what the server has in a form of its own.
func grantOf(a admission.Attributes, o admission.ObjectInterfaces) (access.Grant, error) {
	if obj, ok := a.GetObject().(metav1.Object); ok && obj.GetDeletionTimestamp() != nil {
		return access.Grant{}, nil // it only lets go
	}
	read := func(into runtime.Object) error {
		if err := o.GetObjectConvertor().Convert(a.GetObject(), into, nil); err != nil {
			return fmt.Errorf("read what is written: %w", err)
		}
		return nil
	}
	switch a.GetKind().Kind {
	case "Role":
		var role rbacv1.Role
		err := read(&role)
		return access.Grant{Metadata: role.ObjectMeta, Rules: role.Rules}, err
	case access.ClusterRoleKind:
		var role rbacv1.ClusterRole
		err := read(&role)
		return access.Grant{Metadata: role.ObjectMeta, Rules: role.Rules}, err
	case "RoleBinding":
		var binding rbacv1.RoleBinding
		err := read(&binding)
		return access.Grant{Metadata: binding.ObjectMeta, Subjects: binding.Subjects}, err
	default:
		var binding rbacv1.ClusterRoleBinding
		err := read(&binding)
		return access.Grant{Metadata: binding.ObjectMeta, Subjects: binding.Subjects}, err
	}
}
