package tenancy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// refusal is how an API server says that somebody may not do something.
var refusal = regexp.MustCompile(`cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)"| at the cluster scope)`)

// Hint explains a refusal of the API server to whoever wrote a Kustomization:
// who acted and why, and which commands grant what was missing, unless that would hold
// nobody any more. It returns
// nothing for a text that is no such refusal, and for the control plane itself.
func (i Identity) Hint(text string) string {
	found := refusal.FindStringSubmatch(text)
	if found == nil || i.Privileged() || i.Check() != nil || slices.ContainsFunc(found[1:], unusual) || !strings.Contains(text, "User \""+i.UserName()+"\" cannot ") {
		return ""
	}
	right := right{verb: found[1], resource: found[2], group: found[3], namespace: found[4]}
	if right.fence() {
		return fmt.Sprintf("it acts as the service account %s, %s; whoever may write %s is held by none: an administrator writes this, or has a Kustomization of his own do it", i.ServiceAccount, i.Because, right.name())
	}
	return fmt.Sprintf("it acts as the service account %s, %s; to allow it: %s", i.ServiceAccount, i.Because, strings.Join(right.grant(i), " && "))
}

// plain is what verbs, resources, groups and namespaces are made of. Those of a
// refusal come from manifests, and stand in commands that people paste.
var plain = regexp.MustCompile(`^[A-Za-z0-9./-]*$`)

func unusual(name string) bool { return !plain.MatchString(name) }

// right is what somebody lacks.
type right struct{ verb, resource, group, namespace string }

// grant returns the commands that give it.
func (r right) grant(to Identity) []string {
	name := to.ServiceAccount.Namespace + "-" + to.ServiceAccount.Name
	account := "--serviceaccount=" + to.ServiceAccount.Namespace + ":" + to.ServiceAccount.Name
	if role := r.clusterRole(); role != "" {
		return []string{fmt.Sprintf("kubectl create rolebinding %s -n %s --clusterrole=%s %s", name, r.namespace, role, account)}
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

// name is that of the resource, as kubectl has it.
func (r right) name() string {
	resource, _, _ := strings.Cut(r.resource, "/")
	if r.group != "" {
		resource += "." + r.group
	}
	return resource
}

// fence says whether a right is to write what keeps others, and whoever has it himself,
// within bounds: limits, rights beyond a namespace, and what judges requests.
func (r right) fence() bool {
	resource, _, _ := strings.Cut(r.resource, "/")
	switch {
	case r.verb == "get":
		return false
	case r.namespace == "" && slices.Contains(judging, r.group):
		return true
	default:
		return slices.Contains(unedited, resource)
	}
}

// judging are the API groups whose objects without a namespace say who may do what.
var judging = []string{"rbac.authorization.k8s.io", "admissionregistration.k8s.io", "apiregistration.k8s.io", "certificates.k8s.io", "flowcontrol.apiserver.k8s.io"}

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

// unedited are kinds of these groups that it does not cover.
var unedited = []string{"limitranges", "resourcequotas", "federatedresourcequotas"}

// clusterRole returns the common role that gives the right in a namespace and is not
// out of proportion; empty if there is none.
func (r right) clusterRole() string {
	switch {
	case r.namespace == "", r.verb == "get":
		return ""
	case r.group == "rbac.authorization.k8s.io":
		return "admin"
	case slices.Contains(edited, r.group) && !slices.Contains(unedited, r.resource):
		return "edit"
	default:
		return ""
	}
}
