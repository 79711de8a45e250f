package impersonation

import (
	"context"
	"encoding/json"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/access"
)

// Given returns a function that reports whether a missing right may be granted by a Role or binding of a Work, now that
// it is in the member. It is narrow, as each retry of a Work is a request that may be refused. For a copy of a
// role, the bindings to it are read from the hub's other Works for the member.
func Given(ctx context.Context, hub client.Reader, work *workv1alpha1.Work, obj *unstructured.Unstructured) func(Lack) bool {
	grant, err := access.GrantOf(obj)
	if err != nil {
		return func(Lack) bool { return false } // the member cannot have accepted it
	}
	namespace := obj.GetNamespace()
	if obj.GetKind() == "RoleBinding" || obj.GetKind() == "ClusterRoleBinding" {
		return func(l Lack) bool { return l.BoundIn(namespace, grant.Subjects) }
	}
	if _, copied := access.Copied(work); !copied {
		return func(l Lack) bool { return l.GivenIn(namespace, grant.Rules) }
	}
	bindings := bindingsTo(ctx, hub, work.Namespace, obj)
	return func(l Lack) bool {
		return slices.ContainsFunc(bindings, func(b rbacv1.RoleBinding) bool { return l.BoundIn(b.Namespace, b.Subjects) })
	}
}

// bindingsTo returns the bindings that the control plane has created in the member to a copy of a role. Nobody else
// may bind such a role.
func bindingsTo(ctx context.Context, hub client.Reader, works string, role *unstructured.Unstructured) []rbacv1.RoleBinding {
	var list workv1alpha1.WorkList
	if err := hub.List(ctx, &list, client.InNamespace(works), client.HasLabels{access.RightsLabel}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list what is given in a member")
		return nil
	}
	var out []rbacv1.RoleBinding
	for i := range list.Items {
		for _, raw := range list.Items[i].Spec.Workload.Manifests {
			var b rbacv1.RoleBinding // or a ClusterRoleBinding, which has the same fields and no namespace
			if json.Unmarshal(raw.Raw, &b) == nil && b.RoleRef.Kind == role.GetKind() && b.RoleRef.Name == role.GetName() &&
				(role.GetNamespace() == "" || role.GetNamespace() == b.Namespace) {
				out = append(out, b)
			}
		}
	}
	return out
}
