package agentrights

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// impersonatorSuffix ends the name of the Secret with the token of a cluster's
// impersonator.
const impersonatorSuffix = "-impersonator"

// Everywhere returns what the agent of a cluster may do beyond single namespaces.
func Everywhere(cluster string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(clusterv1alpha1.GroupName, "clusters", []string{"create"}),
		rule(clusterv1alpha1.GroupName, "clusters", []string{"get", "list", "watch", "update", "patch", "delete"}, cluster),
		rule(clusterv1alpha1.GroupName, "clusters/status", []string{"get", "update", "patch"}, cluster),
		rule("config.karmada.io", "resourceinterpretercustomizations", []string{"get", "list", "watch"}),
		rule("config.karmada.io", "resourceinterpreterwebhookconfigurations", []string{"get", "list", "watch"}),
		{NonResourceURLs: []string{clusterv1alpha1.OpenedPath}, Verbs: []string{"get"}},
		rule("", "namespaces", []string{"get"}, metav1.NamespaceSystem, workv1alpha2.NamespaceKarmadaCluster, workv1alpha2.ExecutionNamespace(cluster)),
		rule("certificates.k8s.io", "certificatesigningrequests", []string{"create", "get"}),
	}
}

// Credentials returns what it may do in the namespace of credentials and heartbeats.
// Names cannot be asked for where something is made: that is admission's.
func Credentials(cluster string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule("", "secrets", []string{"create"}),
		rule("", "secrets", []string{"get", "update", "patch", "delete"}, cluster, cluster+impersonatorSuffix),
		rule("coordination.k8s.io", "leases", []string{"create"}),
		rule("coordination.k8s.io", "leases", []string{"get", "update", "patch", "delete"}, cluster),
	}
}

// Events returns what it may do in the namespace of Events about Clusters.
func Events() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule("", "events", []string{"create", "patch"})}
}

// Works returns what it may do in the namespace of its cluster's Works: with these, and to
// report its nodes there. What it makes for that is called as admission says.
func Works() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule("work.karmada.io", "works", []string{"get", "list", "watch", "update", "patch"}),
		rule("work.karmada.io", "works/status", []string{"get", "update", "patch"}),
		rule("", "events", []string{"create", "patch"}),
		rule("", "configmaps", []string{"create"}),
		rule("", "configmaps", []string{"get", "update"}, clusterv1alpha1.NodeProfileName),
	}
}

// Given returns what it may do by the roles that it has in a namespace, or by its
// ClusterRole where that is empty.
func Given(cluster, namespace string) []rbacv1.PolicyRule {
	switch namespace {
	case "":
		return Everywhere(cluster)
	case workv1alpha2.NamespaceKarmadaCluster:
		return Credentials(cluster)
	case workv1alpha2.ExecutionNamespace(cluster):
		return Works()
	case metav1.NamespaceDefault:
		return Events()
	}
	return nil
}

func rule(group, resource string, verbs []string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs}
}
