package unifiedauth

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/access"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// sources reads which rights the roles and bindings of the hub give, and which Works copy
// them. It writes nothing.
type sources struct {
	hub  client.Reader
	skip propagation.SkipRules
}

// rightsBySource indexes the Works that bring rights.
const rightsBySource = "rights-of"

// copies are the Works that copy a source, by cluster; with the name of one, of that
// cluster alone.
func (s sources) copies(ctx context.Context, source access.Source, cluster string) (map[string][]*workv1alpha1.Work, error) {
	opts := []client.ListOption{client.MatchingFields{rightsBySource: string(source)}, client.UnsafeDisableDeepCopy}
	if cluster != "" {
		opts = append(opts, client.InNamespace(workv1alpha2.ExecutionNamespace(cluster)))
	}
	var works workv1alpha1.WorkList
	if err := s.hub.List(ctx, &works, opts...); err != nil {
		return nil, fmt.Errorf("list works with the rights of %s: %w", source, err)
	}
	out := map[string][]*workv1alpha1.Work{}
	for _, work := range pointers(works.Items) {
		if cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(work.Namespace); ok {
			out[cluster] = append(out[cluster], work)
		}
	}
	return out, nil
}

// given are the rights that a source gives.
func (s sources) given(ctx context.Context, source access.Source) ([]access.Right, error) {
	namespace, kind, name := source.Split()
	switch {
	case namespace != "":
		return s.inNamespace(ctx, namespace)
	case kind == access.ClusterRoleKind:
		return s.byRole(ctx, name)
	case kind == "":
		return nil, nil // of an earlier form
	}
	binding := &rbacv1.ClusterRoleBinding{}
	if err := s.hub.Get(ctx, client.ObjectKey{Name: name}, binding, client.UnsafeDisableDeepCopy); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if right, gives := access.ByClusterBinding(binding); gives {
		return []access.Right{right}, nil
	}
	return nil, nil
}

func (s sources) inNamespace(ctx context.Context, namespace string) ([]access.Right, error) {
	reaches, err := s.reaches(ctx, namespace)
	if err != nil || !reaches {
		return nil, err
	}
	var bindings rbacv1.RoleBindingList
	if err := s.hub.List(ctx, &bindings, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list role bindings: %w", err)
	}
	var roles rbacv1.RoleList
	if err := s.hub.List(ctx, &roles, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list roles: %w", err)
	}
	return access.InNamespace(namespace, pointers(roles.Items), pointers(bindings.Items)), nil
}

// bindingsByRole indexes RoleBindings and ClusterRoleBindings by the ClusterRole that
// they are to.
const bindingsByRole = "rights-by-role"

// byRole is the copy of a ClusterRole, if anybody is bound to it.
func (s sources) byRole(ctx context.Context, name string) ([]access.Right, error) {
	role := &rbacv1.ClusterRole{}
	if err := s.hub.Get(ctx, client.ObjectKey{Name: name}, role, client.UnsafeDisableDeepCopy); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	bound, err := s.bindsAnybody(ctx, name)
	if err != nil || !bound {
		return nil, err
	}
	return []access.Right{access.ByClusterRole(role)}, nil
}

func (s sources) bindsAnybody(ctx context.Context, role string) (bool, error) {
	to := client.MatchingFields{bindingsByRole: role}
	var everywhere rbacv1.ClusterRoleBindingList
	if err := s.hub.List(ctx, &everywhere, to, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list cluster role bindings: %w", err)
	}
	for i := range everywhere.Items {
		if _, gives := access.ByClusterBinding(&everywhere.Items[i]); gives {
			return true, nil
		}
	}
	var bindings rbacv1.RoleBindingList
	if err := s.hub.List(ctx, &bindings, to, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list role bindings: %w", err)
	}
	for i := range bindings.Items {
		if b := &bindings.Items[i]; !s.skip.SkipsNamespace(b.Namespace) && access.Binds(b) {
			return true, nil
		}
	}
	return false, nil
}

// reaches reports whether what is in a namespace may reach members. One that goes takes
// its rights along.
func (s sources) reaches(ctx context.Context, namespace string) (bool, error) {
	if s.skip.SkipsNamespace(namespace) {
		return false, nil
	}
	found := &corev1.Namespace{}
	err := s.hub.Get(ctx, client.ObjectKey{Name: namespace}, found, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return found.DeletionTimestamp.IsZero(), nil
}
