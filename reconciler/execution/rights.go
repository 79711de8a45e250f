package execution

import (
	"context"
	"encoding/json"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/access"
)

// gave has the Works looked at again that wait for a right which a manifest has just
// given in the member, and no others: each look is a request that may be refused.
func (l *lane) gave(ctx context.Context, s *state, m *manifest) {
	desired, err := m.object(s.work)
	if err != nil {
		return // it would not have been sent
	}
	grant, err := access.GrantOf(desired)
	if err != nil {
		return // nor taken
	}
	if m.gvk.Kind == "RoleBinding" || m.gvk.Kind == "ClusterRoleBinding" {
		l.line.release(func(c cause) bool { return c.event == onRights && c.lack.BoundIn(m.key.Namespace, grant.Subjects) })
		return
	}
	if _, copied := s.work.Labels[access.RightsLabel]; !copied {
		l.line.release(func(c cause) bool { return c.event == onRights && c.lack.GivenIn(m.key.Namespace, grant.Rules) })
		return
	}
	bindings := l.bindingsTo(ctx, m)
	l.line.release(func(c cause) bool {
		return c.event == onRights && slices.ContainsFunc(bindings, func(b rbacv1.RoleBinding) bool { return c.lack.BoundIn(b.Namespace, b.Subjects) })
	})
}

// bindingsTo are those that the control plane has made in the member to a role of its
// own. Nobody else's are to such a role.
func (l *lane) bindingsTo(ctx context.Context, role *manifest) []rbacv1.RoleBinding {
	var works workv1alpha1.WorkList
	if err := l.hub.List(ctx, &works, client.InNamespace(workv1alpha2.ExecutionNamespace(l.cluster)), client.HasLabels{access.RightsLabel}, unsafeGet); err != nil {
		log.FromContext(ctx).Error(err, "list what is given in a member")
		return nil
	}
	var out []rbacv1.RoleBinding
	for i := range works.Items {
		for _, raw := range works.Items[i].Spec.Workload.Manifests {
			var b rbacv1.RoleBinding // or one of the whole cluster: the same without a namespace
			if json.Unmarshal(raw.Raw, &b) == nil && b.RoleRef.Kind == role.gvk.Kind && b.RoleRef.Name == role.key.Name && (role.key.Namespace == "" || role.key.Namespace == b.Namespace) {
				out = append(out, b)
			}
		}
	}
	return out
}
