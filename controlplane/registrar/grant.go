package registrar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/warning"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
	"github.com/flotilla-io/flotilla/policies/agentrights"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// kindOf returns an empty object of a resource; nil for one that rights are not made of.
func kindOf(resource string) client.Object {
	switch resource {
	case "namespaces":
		return &corev1.Namespace{}
	case "clusterroles":
		return &rbacv1.ClusterRole{}
	case "clusterrolebindings":
		return &rbacv1.ClusterRoleBinding{}
	case "roles":
		return &rbacv1.Role{}
	case "rolebindings":
		return &rbacv1.RoleBinding{}
	}
	return nil
}

func namespaceOf(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}}
}

// clusterOf returns the cluster whose agent an object would be for, by its name; empty
// for the namespace that all agents have in common. It errs on an object that is for
// no agent.
func clusterOf(resource, namespace, name string) (cluster string, err error) {
	if resource == "namespaces" {
		cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(name)
		switch {
		case name == workv1alpha2.NamespaceKarmadaCluster:
			return "", nil
		case !ok || !identity.IsClusterName(cluster):
			return "", errors.New("the agent of a cluster has its Works in the namespace " + workv1alpha2.ExecutionNamespace("NAME"))
		}
		return cluster, nil
	}
	cluster, ok := identity.ClusterOfRights(name)
	switch {
	case !ok:
		return "", fmt.Errorf("the rights of the agent of a cluster are called %s", identity.Role("NAME"))
	case cluster == identity.Generator || strings.HasSuffix(cluster, identity.ImpersonatorSuffix):
		return "", fmt.Errorf("no cluster is called %s", cluster)
	}
	of := []string{workv1alpha2.NamespaceKarmadaCluster, workv1alpha2.NamespaceKarmadaSystem, metav1.NamespaceDefault, workv1alpha2.ExecutionNamespace(cluster)}
	if namespace != "" && !slices.Contains(of, namespace) {
		return "", fmt.Errorf("the agent of cluster %s has no rights in the namespace %s", cluster, namespace)
	}
	return cluster, nil
}

// grant makes of what is asked for the agent of a cluster what it gets, and says what it
// does not get. It errs on more than an agent may be asked for.
func grant(ctx context.Context, cluster string, obj client.Object) error {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: obj.GetName()}
	switch o := obj.(type) {
	case *rbacv1.ClusterRole:
		if o.AggregationRule != nil {
			return errors.New("aggregationRule: the rights of others are not the agent's")
		}
		return give(ctx, cluster, "", &o.Rules)
	case *rbacv1.Role:
		return give(ctx, cluster, o.Namespace, &o.Rules)
	case *rbacv1.ClusterRoleBinding:
		return agentrights.CheckBinding(identity.Agent(cluster), ref, o.RoleRef, o.Subjects)
	case *rbacv1.RoleBinding:
		ref.Kind = "Role"
		return agentrights.CheckBinding(identity.Agent(cluster), ref, o.RoleRef, o.Subjects)
	}
	return nil
}

// give puts what an agent gets in a namespace in the place of what is asked for.
func give(ctx context.Context, cluster, namespace string, rules *[]rbacv1.PolicyRule) error {
	if excess := agentrights.Excess(cluster, namespace, *rules); len(excess) > 0 {
		return fmt.Errorf("the agent of cluster %s may not have the right to: %s", cluster, list(excess))
	}
	if withheld := agentrights.Withheld(cluster, namespace, *rules); len(withheld) > 0 {
		warning.AddWarning(ctx, "", fmt.Sprintf("the control plane gives the agent of cluster %s its rights itself, and not the right to: %s", cluster, list(withheld)))
	}
	*rules = agentrights.Given(cluster, namespace)
	return nil
}

// shown is how many rights are named.
const shown = 8

func list(rights []string) string { return excerpt.Names(rights, shown) }
