package karmadas

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RoleName returns the name of the agent's ClusterRole; the names of its Roles
// begin with it.
func RoleName(cluster string) string { return "system:karmada:" + cluster + ":agent" }

// Rights returns the roles and bindings that karmadactl creates for the agent of
// a cluster.
func Rights(cluster string) []client.Object {
	labels := map[string]string{"karmada.io/system": "true"}
	name, space := RoleName(cluster), "karmada-es-"+cluster
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: agentPrefix + cluster}}
	everywhere := metav1.ObjectMeta{Name: name, Labels: labels}
	out := []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: everywhere, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters"}, ResourceNames: []string{cluster}, Verbs: []string{"get", "delete"}},
			{APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters"}, Verbs: []string{"create", "list", "watch"}},
			{APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters/status"}, ResourceNames: []string{cluster}, Verbs: []string{"update"}},
			{APIGroups: []string{"config.karmada.io"}, Resources: []string{"resourceinterpreterwebhookconfigurations", "resourceinterpretercustomizations"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}},
			{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create", "get"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: everywhere, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}},
	}
	for _, role := range []*rbacv1.Role{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: name + "-secret", Labels: labels}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{cluster, cluster + "-impersonator"}, Verbs: []string{"get", "patch"}},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name + "-work", Labels: labels}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"work.karmada.io"}, Resources: []string{"works"}, Verbs: []string{"get", "create", "list", "watch", "update", "delete"}},
			{APIGroups: []string{"work.karmada.io"}, Resources: []string{"works/status"}, Verbs: []string{"patch", "update"}},
		}},
	} {
		out = append(out, role, &rbacv1.RoleBinding{
			ObjectMeta: *role.ObjectMeta.DeepCopy(), Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		})
	}
	return out
}

// MakeRights is the third step: it creates the agent's RBAC objects, or updates
// those that exist, and the namespaces that they are in.
func (r *Register) MakeRights(ctx context.Context, generator client.Client) ([]client.Object, error) {
	made := Rights(r.Cluster)
	for _, namespace := range []string{"karmada-cluster", "karmada-es-" + r.Cluster} {
		err := generator.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
		if apierrors.IsNotFound(err) {
			err = generator.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"karmada.io/system": "true"}}})
		}
		if err != nil {
			return nil, fmt.Errorf("namespace %s: %w", namespace, err)
		}
	}
	for _, obj := range made {
		err := generator.Create(ctx, obj)
		if apierrors.IsAlreadyExists(err) {
			err = generator.Update(ctx, obj)
		}
		if err != nil {
			return nil, fmt.Errorf("%T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
		}
	}
	return made, nil
}
