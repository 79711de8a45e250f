package remark

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// NotReady returns what to say of a cluster that is not ready, by its condition Ready, which is nil where it has none, and
// a message about that: where it was lost with many others, that belongs to it.
func NotReady(c *clusterv1alpha1.Cluster, ready *metav1.Condition, message string) Remark {
	out := Remark{Message: message, Next: clusterNext(c, ready)}
	suspected := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionMassFailureSuspected)
	if suspected == nil || suspected.Status != metav1.ConditionTrue || !isLost(c) {
		return out
	}
	of := lost(c.Name, *suspected)
	how := of.Message
	if at := strings.IndexAny(how, ":,"); at > 0 {
		how = how[:at] // the others have problems of their own
	}
	out.Message, out.Next = "nothing is moved off it, as "+how+"; "+message, out.Next+"; "+of.Next
	return out
}

// clusterNext returns the next step for a cluster that is not ready, by its condition Ready; nil where it has none.
func clusterNext(c *clusterv1alpha1.Cluster, ready *metav1.Condition) string {
	pull, leave, enter := c.Spec.SyncMode == clusterv1alpha1.Pull, "flotilla unjoin ", "flotilla join "
	if pull {
		leave, enter = "flotilla unregister ", "flotilla register --cluster-name "
	}
	reason := ""
	if ready != nil {
		reason = ready.Reason
	}
	switch {
	case reason == clusterv1alpha1.ClusterClaimedReason:
		return leave + c.Name + " leaves it to the other control plane; " + enter + c.Name + " --take-over --dry-run says what taking it back means"
	case reason == clusterv1alpha1.ClusterElsewhereReason:
		return "stop this control plane, or the one that runs from a copy of its folder: flotilla describe cluster " + c.Name
	case reason == clusterv1alpha1.ClusterAnswersAgainReason:
		return "nothing, unless it goes away again"
	case reason == clusterv1alpha1.ClusterNotHeardYetReason:
		return "ask again in half a minute"
	case reason == clusterv1alpha1.ClusterMovingReason:
		return "wait about 40s, or 100s where yet another copy has asked there: this control plane was elsewhere when it last acted there"
	case reason == clusterv1alpha1.ClusterIdentityMismatchReason:
		return leave + c.Name + ", and then " + enter + c.Name + ", if the cluster that answers there is to have its place"
	case reason == clusterv1alpha1.ClusterCredentialsRefusedReason && !pull:
		return enter + c.Name + " --cluster-kubeconfig FILE brings new credentials"
	case !pull && ready != nil && strings.Contains(ready.Message, clusterv1alpha1.ClusterUntrustedMessage):
		return "was it built anew? " + leave + c.Name + ", and then " + enter + c.Name + " --cluster-kubeconfig FILE; else correct its caBundle: flotilla describe cluster " + c.Name
	case pull && reason == clusterv1alpha1.ClusterNotReachableReason:
		return fmt.Sprintf("its agent runs and cannot reach it: see whether the API server of %s is up: flotilla describe cluster %s", c.Name, c.Name)
	case pull:
		return fmt.Sprintf("see whether flotilla-agent runs for %s and reaches the control plane: flotilla describe cluster %s", c.Name, c.Name)
	default:
		return fmt.Sprintf("see whether %s is up and accepts the fleet's credentials: flotilla describe cluster %s", c.Name, c.Name)
	}
}

// ResumeNext is the next step after the control plane was set back.
const ResumeNext = "flotilla resume hub --dry-run"

// OrphansNext returns the next step for objects that no Work names. After a restored backup these
// include what was made since the backup, and once the control plane goes on nothing
// distinguishes them.
func OrphansNext(c *clusterv1alpha1.Cluster) string {
	if meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionHeld) {
		return "leave them alone, as what was made since the backup is among them: " + ResumeNext
	}
	return "look at each first, as after a restored backup what was made since is among them: flotilla prune --cluster " + c.Name + " --dry-run"
}

// DependencyNext returns the next step for the dependency in a message, which has to be ready first.
func DependencyNext(message string) string {
	rest, found := strings.CutPrefix(message, "dependency ")
	key, _, _ := strings.Cut(rest, " ")
	namespace, name, ok := strings.Cut(key, "/")
	switch {
	case !found || !ok || len(validation.IsDNS1123Subdomain(name))+len(validation.IsDNS1123Label(namespace)) > 0:
		return "see what it depends on: flotilla get kustomizations -A"
	case strings.Contains(message, "suspended"):
		return "let it go on: flotilla resume kustomization " + name + inNamespace(namespace)
	case strings.Contains(message, "does not exist"):
		return "commit it, or correct spec.dependsOn: flotilla get kustomizations" + inNamespace(namespace)
	default:
		return "mend that first: flotilla tree kustomization/" + name + inNamespace(namespace)
	}
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}
