package spaces

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	owners "github.com/flotilla-io/flotilla/controlplane/admission"
	"github.com/flotilla-io/flotilla/policies/access"
)

// Spaces refuses to create namespaces of clusters and to grant rights in them. A user with
// such a namespace could read there what others send to the cluster once it joins, Secrets
// included.
type Spaces struct{ *admission.Handler }

var _ admission.ValidationInterface = Spaces{}

// New returns the plugin.
func New() Spaces { return Spaces{admission.NewHandler(admission.Create, admission.Update)} }

// Validate implements admission.ValidationInterface.
func (Spaces) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" || owners.MayBringIdentity(a.GetUserInfo()) {
		return nil
	}
	obj, err := meta.Accessor(a.GetObject())
	if err != nil || obj.GetDeletionTimestamp() != nil {
		return nil //nolint:nilerr // neither kind lacks metadata, and a deleted object grants nothing
	}
	switch kind := a.GetKind().GroupKind(); {
	case kind == corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind() && a.GetOperation() == admission.Create:
		if _, of := workv1alpha2.ClusterOfExecutionNamespace(obj.GetName()); of { // a has no generated name
			return admission.NewForbidden(a, errors.New("the control plane makes the namespaces karmada-es-* when clusters join, for what is sent to them: take another name"))
		}
	case access.Gives(kind):
		if cluster, of := workv1alpha2.ClusterOfExecutionNamespace(a.GetNamespace()); of {
			return admission.NewForbidden(a, fmt.Errorf("who has rights in namespace %s reads what all users send to cluster %s: have an administrator (group system:masters) write it", a.GetNamespace(), cluster))
		}
	}
	return nil
}
