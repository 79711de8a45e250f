package access

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
)

const (
	// ImpersonatorName is the name of the role in a member by which the hub acts
	// as its users, of its binding, and of the account that has it.
	ImpersonatorName = "karmada-impersonator"
	// MastersName is the name of the binding in a member that gives the hub's
	// administrators all rights there.
	MastersName = "flotilla-masters"

	impersonate  = "impersonate"
	clusterAdmin = "cluster-admin"
)

// Rules let an account act as the subjects, and read who the cluster is.
func (s Subjects) Rules() []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	add := func(group, resource string, names []string, anybody bool) {
		switch {
		case anybody:
			names = nil
		case len(names) == 0:
			return
		}
		out = append(out, rbacv1.PolicyRule{Verbs: []string{impersonate}, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names})
	}
	add("", impersonatedUsers, s.Users, s.AnyUser)
	add("", impersonatedGroups, s.Groups, false)
	add("", "serviceaccounts", s.accountNames(), s.AnyServiceAccount)
	return append(out, rbacv1.PolicyRule{
		Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{metav1.NamespaceSystem},
	})
}

// accountNames are the accounts' names without their namespaces: rules know no
// others.
func (s Subjects) accountNames() []string {
	names := set{}
	for _, account := range s.ServiceAccounts {
		_, name, _ := strings.Cut(account, "/")
		names.add(name)
	}
	return slices.Sorted(maps.Keys(names))
}

// Works return what a cluster should hold so that the hub can act in it as the
// subjects. A cluster without
// an impersonator should hold nothing.
func Works(cluster *clusterv1alpha1.Cluster, s Subjects) ([]*workv1alpha1.Work, error) {
	if cluster.Spec.ImpersonatorSecretRef == nil {
		return nil, nil
	}
	bound := func(name, role string, to rbacv1.Subject) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: ClusterRoleKind, Name: role},
			Subjects:   []rbacv1.Subject{to},
		}
	}
	var out []*workv1alpha1.Work
	for _, obj := range []runtime.Object{
		&rbacv1.ClusterRole{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: ClusterRoleKind},
			ObjectMeta: metav1.ObjectMeta{Name: ImpersonatorName},
			Rules:      s.Rules(),
		},
		bound(ImpersonatorName, ImpersonatorName, rbacv1.Subject{
			Kind: rbacv1.ServiceAccountKind, Namespace: AccountsNamespace(cluster), Name: ImpersonatorName,
		}),
		bound(MastersName, clusterAdmin, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: clusterv1alpha1.GroupMasters}),
	} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, fmt.Errorf("cluster %s: %w", cluster.Name, err)
		}
		work, err := plan.System(&unstructured.Unstructured{Object: content}, cluster)
		if err != nil {
			return nil, fmt.Errorf("cluster %s: %w", cluster.Name, err)
		}
		out = append(out, work)
	}
	return out, nil
}

// AccountsNamespace returns the namespace in a member of the account that the hub's
// users come through; empty if there is none.
func AccountsNamespace(cluster *clusterv1alpha1.Cluster) string {
	if cluster.Spec.ImpersonatorSecretRef == nil {
		return ""
	}
	return cmp.Or(cluster.Annotations[clusterv1alpha1.AccountsNamespaceAnnotation], cluster.Spec.ImpersonatorSecretRef.Namespace)
}

// Groups returns the groups that may be impersonated by what a Work carries that
// Works made, and false if it does not say.
func Groups(work *workv1alpha1.Work) (map[string]struct{}, bool) {
	var role rbacv1.ClusterRole
	if len(work.Spec.Workload.Manifests) != 1 || json.Unmarshal(work.Spec.Workload.Manifests[0].Raw, &role) != nil {
		return nil, false
	}
	for _, rule := range role.Rules {
		if slices.Contains(rule.Resources, impersonatedGroups) && len(rule.ResourceNames) > 0 {
			out := set{}
			for _, name := range rule.ResourceNames {
				out.add(name)
			}
			return out, true
		}
	}
	return nil, false
}

// RoleWorkName is the name of the Work that carries the impersonator's role.
func RoleWorkName() string { return workv1alpha2.WorkName(ClusterRoleKind, ImpersonatorName, "") }

// WorkNames are the names of all Works that a cluster may have from Works.
func WorkNames() []string { return workNames(workv1alpha2.WorkName) }

// FormerWorkNames are the names that they had while names were made otherwise, in the
// same order.
func FormerWorkNames() []string { return workNames(workv1alpha2.FormerWorkName) }

// FormerWorkName is the former name of the Work that is one of WorkNames; empty for
// another name.
func FormerWorkName(name string) string {
	if i := slices.Index(WorkNames(), name); i >= 0 {
		return FormerWorkNames()[i]
	}
	return ""
}

func workNames(named func(kind, name, namespace string) string) []string {
	return []string{
		named(ClusterRoleKind, ImpersonatorName, ""),
		named("ClusterRoleBinding", ImpersonatorName, ""),
		named("ClusterRoleBinding", MastersName, ""),
	}
}
