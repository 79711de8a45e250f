package access

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/author"
)

// ClusterRoleKind is the kind of role that lets anybody reach a cluster.
const ClusterRoleKind = "ClusterRole"

const clusterBindingKind = "ClusterRoleBinding"

const (
	// allClusters is the name by which all clusters are asked at once.
	allClusters = "*"

	mastersOfHub       = "system:masters"
	serviceAccounts    = "system:serviceaccounts"
	accountsOf         = serviceAccounts + ":"
	systemPrefix       = "system:"
	systemKubePrefix   = "system:kube-"
	systemNodePrefix   = "system:node:"
	anonymous          = "system:anonymous"
	proxyOfClusters    = "clusters/proxy"
	proxyOfSearch      = "proxying/proxy"
	searchGroup        = "search.karmada.io"
	impersonatedUsers  = "users"
	impersonatedGroups = "groups"
)

// Subjects are who may reach a cluster through the hub. Names are sorted.
type Subjects struct {
	// Users, by name. Parts of a cluster, as kubelets, are never among them.
	Users []string
	// Groups, as members hear of them.
	Groups []string
	// ServiceAccounts of the hub, as "namespace/name".
	ServiceAccounts []string
	// AnyUser is set where a group may reach the cluster: whoever is in it has a
	// name that nobody knows beforehand.
	AnyUser bool
	// AnyServiceAccount is set where all service accounts of a namespace may.
	AnyServiceAccount bool
}

// Of returns who may reach a cluster: the subjects of the hub's bindings to roles
// that grant any verb on its proxy.
func Of(cluster string, roles []*rbacv1.ClusterRole, bindings []*rbacv1.ClusterRoleBinding) Subjects {
	granting := map[string]bool{}
	for _, role := range roles {
		if Grants(role, cluster) {
			granting[role.Name] = true
		}
	}
	c := collection{users: set{}, groups: set{}, accounts: set{}}
	c.groups.add(clusterv1alpha1.GroupMasters) // whom the hub trusts with all is trusted in members
	for _, binding := range bindings {
		if binding.RoleRef.Kind == ClusterRoleKind && granting[binding.RoleRef.Name] {
			for _, subject := range binding.Subjects {
				c.add(subject)
			}
		}
	}
	return Subjects{
		Users: c.users.sorted(), Groups: c.groups.sorted(), ServiceAccounts: c.accounts.sorted(),
		AnyUser: c.anyUser, AnyServiceAccount: c.anyAccount,
	}
}

// Grants reports whether a role lets somebody reach a cluster through the hub, in
// any way.
func Grants(role *rbacv1.ClusterRole, cluster string) bool {
	return grants(role, func(names []string) bool {
		return len(names) == 0 || slices.Contains(names, cluster) || slices.Contains(names, allClusters)
	})
}

// GrantsAny reports whether a role lets somebody reach any cluster.
func GrantsAny(role *rbacv1.ClusterRole) bool {
	return grants(role, func([]string) bool { return true })
}

func grants(role *rbacv1.ClusterRole, named func(names []string) bool) bool {
	return slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
		return len(rule.Verbs) > 0 &&
			(covers(rule, clusterv1alpha1.GroupName, proxyOfClusters) && named(rule.ResourceNames) || covers(rule, searchGroup, proxyOfSearch))
	})
}

// covers reports whether a rule is about a sub-resource.
func covers(rule rbacv1.PolicyRule, group, resource string) bool {
	_, sub, _ := strings.Cut(resource, "/")
	return (slices.Contains(rule.APIGroups, group) || slices.Contains(rule.APIGroups, rbacv1.APIGroupAll)) &&
		(slices.Contains(rule.Resources, resource) || slices.Contains(rule.Resources, rbacv1.ResourceAll) || slices.Contains(rule.Resources, "*/"+sub))
}

// collection gathers subjects.
type collection struct {
	users, groups, accounts set
	anyUser, anyAccount     bool
}

func (c *collection) add(subject rbacv1.Subject) {
	switch subject.Kind {
	case rbacv1.UserKind:
		c.user(subject.Name)
	case rbacv1.GroupKind:
		c.group(subject.Name)
	case rbacv1.ServiceAccountKind:
		c.account(subject.Namespace, subject.Name)
	}
}

func (c *collection) user(name string) {
	if name == "" || name == anonymous || strings.HasPrefix(name, author.Prefix) || strings.HasPrefix(name, systemKubePrefix) || strings.HasPrefix(name, systemNodePrefix) {
		return // the proxy lets nobody through by these names
	}
	const account = "system:serviceaccount:"
	if rest, ok := strings.CutPrefix(name, account); ok {
		namespace, short, _ := strings.Cut(rest, ":")
		c.account(namespace, short)
		return
	}
	c.users.add(name)
}

func (c *collection) group(name string) {
	switch {
	case name == "", name == mastersOfHub, strings.HasPrefix(name, author.Prefix):
		// The hub's administrators are impersonated by the group of ours, which is
		// always there. By name they are known where they are bound by name.
	case name == serviceAccounts, strings.HasPrefix(name, accountsOf):
		c.anyAccount = true
		c.groups.add(name)
		c.groups.add(serviceAccounts)
	case strings.HasPrefix(name, systemPrefix):
		c.anyUser = true // such groups are of one cluster, and not sent to others
	default:
		c.anyUser = true
		c.groups.add(name)
	}
}

func (c *collection) account(namespace, name string) {
	if namespace == "" || name == "" {
		return
	}
	c.accounts.add(namespace + "/" + name)
	c.groups.add(serviceAccounts)
	c.groups.add(accountsOf + namespace)
}

type set map[string]struct{}

func (s set) add(name string) { s[name] = struct{}{} }

func (s set) sorted() []string { return slices.Sorted(maps.Keys(s)) }
