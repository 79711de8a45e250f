package tenancy

import (
	"fmt"
	"slices"
	"strings"
)

// right is what somebody lacks.
type right struct{ verb, resource, group, namespace string }

// Roles that Kubernetes has for those who work in a namespace.
const (
	roleEdit  = "edit"
	roleAdmin = "admin"
)

// grant returns the commands that give it. Names differ by what is given, so that
// each can be run after the others.
func (r right) grant(to Identity) []string {
	name := to.ServiceAccount.Namespace + "-" + to.ServiceAccount.Name
	account := "--serviceaccount=" + to.ServiceAccount.Namespace + ":" + to.ServiceAccount.Name
	if role := r.clusterRole(); role != "" {
		return []string{fmt.Sprintf("kubectl create rolebinding %s-%s -n %s --clusterrole=%s %s", name, role, r.namespace, role, account)}
	}
	resource := r.name()
	own := name + "-" + strings.ReplaceAll(resource, ".", "-")
	if r.verb == "get" {
		own = name + "-get-" + strings.ReplaceAll(resource, ".", "-")
	}
	rules := fmt.Sprintf("--verb=%s --resource=%s", strings.Join(r.verbs(), ","), resource)
	if r.namespace == "" {
		return []string{
			fmt.Sprintf("kubectl create clusterrole %s %s", own, rules),
			fmt.Sprintf("kubectl create clusterrolebinding %s --clusterrole=%s %s", own, own, account),
		}
	}
	return []string{
		fmt.Sprintf("kubectl create role %s -n %s %s", own, r.namespace, rules),
		fmt.Sprintf("kubectl create rolebinding %s -n %s --role=%s %s", own, r.namespace, own, account),
	}
}

// kind is the resource without its subresource.
func (r right) kind() string {
	resource, _, _ := strings.Cut(r.resource, "/")
	return resource
}

// name is that of the resource, as kubectl has it.
func (r right) name() string {
	if r.group != "" {
		return r.kind() + "." + r.group
	}
	return r.kind()
}

// isNamespace reports whether it is about a Namespace itself. A refusal of one names it as
// where the request is, as for what is in it.
func (r right) isNamespace() bool { return r.group == "" && r.kind() == "namespaces" }

// fence reports whether a right is to write what keeps others, and whoever has it himself,
// within bounds: limits, rights beyond a namespace, what judges requests, and
// Namespaces, whose labels say what holds in them.
func (r right) fence() bool {
	switch {
	case r.verb == "get":
		return false
	case r.namespace == "" && slices.Contains(judging, r.group):
		return true
	default:
		return r.isNamespace() || slices.Contains(limits, r.kind())
	}
}

// judging are the API groups whose objects without a namespace say who may do what.
var judging = []string{"rbac.authorization.k8s.io", "admissionregistration.k8s.io", "apiregistration.k8s.io", "certificates.k8s.io", "flowcontrol.apiserver.k8s.io"}

// limits are kinds that bound what a namespace may hold.
var limits = []string{"limitranges", "resourcequotas", "federatedresourcequotas"}

// verbs are what is needed along with the one that is missing.
func (r right) verbs() []string {
	if r.verb == "get" {
		return []string{"get"}
	}
	return []string{"get", "create", "patch", "delete"}
}

// edited are the API groups that the ClusterRole edit covers.
var edited = []string{
	"", "apps", "autoscaling", "batch", "networking.k8s.io", "policy",
	"autoscaling.karmada.io", "multicluster.x-k8s.io", "networking.karmada.io", "policy.karmada.io",
	"source.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io", "notification.toolkit.fluxcd.io",
}

// unedited are kinds of these groups that it does not cover, besides the fences.
var unedited = []string{"endpoints", "podtemplates", "controllerrevisions"}

// clusterRole returns the common role that gives the right in a namespace and is not
// out of proportion; empty if there is none.
func (r right) clusterRole() string {
	switch {
	case r.namespace == "", r.verb == "get", r.fence():
		return ""
	case r.group == "rbac.authorization.k8s.io":
		return roleAdmin
	case slices.Contains(edited, r.group) && !slices.Contains(unedited, r.kind()):
		return roleEdit
	default:
		return ""
	}
}
