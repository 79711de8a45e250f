package agentrights

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// known returns what karmadactl register asks for beyond what is given, for the agent of
// a cluster. Nobody gets it: where Karmada's agent needs it, it gets that part which is
// about its own cluster.
func known(cluster, namespace string) []rbacv1.PolicyRule {
	leases := rule("coordination.k8s.io", "leases", []string{"get", "create", "update", "patch"})
	events := rule("", "events", []string{"create", "patch", "update"})
	switch namespace {
	case "":
		return []rbacv1.PolicyRule{
			rule(clusterv1alpha1.GroupName, "clusters", []string{"list", "watch"}),
			rule("", "namespaces", []string{"get"}),
			leases, events,
		}
	case workv1alpha2.NamespaceKarmadaCluster, workv1alpha2.NamespaceKarmadaSystem:
		return []rbacv1.PolicyRule{leases, events}
	case workv1alpha2.ExecutionNamespace(cluster):
		return []rbacv1.PolicyRule{rule("work.karmada.io", "works", []string{"create", "delete"}), events}
	case metav1.NamespaceDefault:
		return []rbacv1.PolicyRule{events}
	}
	return nil
}

// Excess returns what of the rules asked for in a namespace, or by a ClusterRole where
// that is empty, neither an agent of the cluster has nor karmadactl register is known to
// ask for it; in words, each once. Nothing is returned where all may be asked for.
func Excess(cluster, namespace string, asked []rbacv1.PolicyRule) []string {
	return beyond(asked, slices.Concat(Given(cluster, namespace), known(cluster, namespace)))
}

// Withheld returns, in words, what of the rules asked for the agent is not given by its
// roles.
func Withheld(cluster, namespace string, asked []rbacv1.PolicyRule) []string {
	return beyond(asked, Given(cluster, namespace))
}

// right is one thing that a rule allows.
type right struct {
	group, resource, name, url, verb string
}

func (r right) String() string {
	if r.url != "" {
		return r.verb + " " + r.url
	}
	out := r.verb + " " + r.resource
	if r.group != "" {
		out += "." + r.group
	}
	if r.name != "" {
		out += " " + r.name
	}
	return out
}

// each calls do with all that rules allow.
func each(rules []rbacv1.PolicyRule, do func(right)) {
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""} // any
		}
		for _, verb := range rule.Verbs {
			for _, url := range rule.NonResourceURLs {
				do(right{url: url, verb: verb})
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range names {
						do(right{group: group, resource: resource, name: name, verb: verb})
					}
				}
			}
		}
	}
}

// beyond returns what rules allow that most do not. A wildcard is beyond all that has none.
func beyond(asked, most []rbacv1.PolicyRule) []string {
	allowed := map[right]bool{}
	each(most, func(r right) { allowed[r] = true })
	var out []string
	each(asked, func(r right) {
		any := r
		any.name = ""
		if text := r.String(); !allowed[r] && !allowed[any] && !slices.Contains(out, text) {
			out = append(out, text)
		}
	})
	return out
}

// CheckBinding says why a binding is not that of the agent of a cluster to a role of
// this kind and name; nil if it is. agent is its user name.
func CheckBinding(agent string, role, asked rbacv1.RoleRef, subjects []rbacv1.Subject) error {
	if asked != role {
		return fmt.Errorf("roleRef: it is to the %s %s, it must be to the %s %s", asked.Kind, asked.Name, role.Kind, role.Name)
	}
	own := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: agent}
	for _, subject := range subjects {
		if subject.Kind == rbacv1.UserKind && subject.APIGroup == "" {
			subject.APIGroup = rbacv1.GroupName // as the API server has it
		}
		if subject != own {
			return fmt.Errorf("subjects: %s %s is not the agent, which is the user %s", subject.Kind, subject.Name, agent)
		}
	}
	return nil
}
