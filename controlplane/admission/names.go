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

// Names reserves the names that members use for the control plane's users and their rights
// for the control plane and its administrators. A Role or binding with such a name would
// otherwise reach members like any other template.
type Names struct{ *admission.Handler }

var _ admission.ValidationInterface = Names{}

// NewNames returns the plugin.
func NewNames() Names { return Names{admission.NewHandler(admission.Create, admission.Update)} }

// Validate refuses a Role or binding that has such a name, also among its subjects or among
// the users that it allows to impersonate.
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

// grantOf reads a Role or binding from the server's internal form.
func grantOf(a admission.Attributes, o admission.ObjectInterfaces) (access.Grant, error) {
	if obj, ok := a.GetObject().(metav1.Object); ok && obj.GetDeletionTimestamp() != nil {
		return access.Grant{}, nil // it is being deleted
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
