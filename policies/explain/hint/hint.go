// Package hint suggests commands that show more about an object.
//
// In goes the name of an object of the control plane, and what is wrong with it;
// out come parts of command lines, and sentences that end with one. It reads
// nothing, and does not check whether the object exists.
package hint

import (
	"fmt"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/symptom"
)

// Object names the object that a hint is about.
type Object struct {
	APIVersion, Kind string
	// Namespace is empty for cluster-scoped kinds.
	Namespace, Name string
}

// Parse returns the object of a text such as "Deployment shop/web".
func Parse(text string) Object {
	kind, name, _ := strings.Cut(text, " ")
	o := Object{Kind: kind, Name: name}
	if namespace, short, namespaced := strings.Cut(name, "/"); namespaced {
		o.Namespace, o.Name = namespace, short
	}
	return o
}

// Args returns the arguments that name the object on a command line: "deployment
// web -n shop".
func (o Object) Args() string { return strings.ToLower(o.Kind) + " " + o.Name + o.in() }

// Path returns the object as commands that take several have it: "deployment/web
// -n shop".
func (o Object) Path() string { return strings.ToLower(o.Kind) + "/" + o.Name + o.in() }

// BindingArgs returns the arguments that name the object's binding on a command
// line.
func (o Object) BindingArgs() string {
	kind := "rb "
	if o.Namespace == "" {
		kind = "crb "
	}
	return kind + workv1alpha2.BindingName(o.Kind, o.Name) + o.in()
}

// in returns the flag for the object's namespace; empty for cluster-scoped kinds.
func (o Object) in() string {
	if o.Namespace == "" {
		return ""
	}
	return " -n " + o.Namespace
}

// Command returns a sentence with the command that shows more about an object
// that is not healthy in clusters.
func (o Object) Command(s symptom.Symptom, clusters []string) string {
	object := strings.ToLower(o.Kind) + "/" + o.Name
	if s.Denied {
		return "ask for the right to reach the clusters, or who has it for: flotilla explain " + object + o.in()
	}
	switch s.Reason {
	case "CrashLoopBackOff", "OOMKilled", "Error":
		return fmt.Sprintf("see what it said before it ended: flotilla logs %s%s -C %s --previous", object, o.in(), clusters[0])
	default:
		return fmt.Sprintf("see what happened there: flotilla events --for %s%s -C %s", object, o.in(), strings.Join(clusters[:min(len(clusters), mostClusters)], ","))
	}
}

// mostClusters is how many clusters one command names.
const mostClusters = 3

// Ours returns, for kinds on which the control plane itself acts, a sentence with
// the command that shows what came of it; empty for all others.
func (o Object) Ours() string {
	group, _, _ := strings.Cut(o.APIVersion, "/")
	of := strings.ToLower(o.Kind) + "/" + o.Name + o.in()
	switch {
	case group == kustomizev1.GroupVersion.Group && o.Kind == kustomizev1.KustomizationKind:
		return "the control plane acts on it by itself; what comes of it: flotilla tree " + of
	case group == sourcev1.GroupVersion.Group && (o.Kind == sourcev1.GitRepositoryKind || o.Kind == sourcev1.OCIRepositoryKind || o.Kind == sourcev1.BucketKind || o.Kind == sourcev1.ExternalArtifactKind):
		return "the control plane acts on it by itself; what comes of it: flotilla trace " + of
	case group == notificationv1.GroupVersion.Group && o.Kind == "Provider":
		return "the control plane acts on it by itself; what it says of it stands at the Alerts that name it: flotilla events --for alert/NAME" + o.in()
	case group == notificationv1.GroupVersion.Group && o.Kind == "Alert":
		return "the control plane acts on it by itself; what it says of it: flotilla events --for " + of
	case group == notificationv1.GroupVersion.Group && o.Kind == notificationv1.ReceiverKind:
		return "the control plane acts on it by itself; what it says of it: flotilla describe " + of
	case group == policyv1alpha1.GroupVersion.Group && o.Kind == "FederatedResourceQuota":
		return "the control plane acts on it by itself; what is used of it: flotilla describe " + of
	case group == policyv1alpha1.GroupVersion.Group:
		return "the control plane acts on it by itself; flotilla explain of a template that it is about says what comes of it"
	default:
		return ""
	}
}
