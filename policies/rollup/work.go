package rollup

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/staleremoval"
)

// Goes is the text for a copy that is being removed from a cluster.
const Goes = "it is being taken out of this cluster"

// InTheWay returns what to do about an object of others that has the name of one that would be sent, by what the condition
// Applied says of it; empty for what is about something else.
func InTheWay(message string) string {
	if !strings.Contains(message, "conflictResolution") {
		return ""
	}
	return "have it taken over, with what it holds, by conflictResolution: Overwrite in its policy, or give one of the two another name"
}

// WaitsPrefix begins what the condition Applied says of a Work whose objects are made by themselves once what is being
// deleted in the cluster is gone there.
const WaitsPrefix = "waits, as "

// Recalled is the reason for a cluster that has yet to learn that what it has stays.
const Recalled = staleremoval.Stays

// refused returns the state of what a cluster has not applied, by the message of the condition Applied.
func refused(message string) State {
	if strings.HasPrefix(message, WaitsPrefix) {
		return Progressing
	}
	return Failed
}

// OfWork judges a Work by its own status; the text is empty where there is nothing to add. A healthy Work has a
// text where drift is not reverted; one whose object was removed in the cluster is not healthy.
func OfWork(w *workv1alpha1.Work) (State, string) {
	of := func(kind string, status metav1.ConditionStatus) (string, bool) {
		c := meta.FindStatusCondition(w.Status.Conditions, kind)
		if c == nil || c.Status != status {
			return "", false
		}
		return c.Message, true
	}
	refusal, failed := of(workv1alpha1.WorkApplied, metav1.ConditionFalse)
	_, applied := of(workv1alpha1.WorkApplied, metav1.ConditionTrue)
	fault, unread := of(workv1alpha1.WorkInterpreted, metav1.ConditionFalse)
	drift, strayed := of(workv1alpha1.WorkDrifted, metav1.ConditionTrue)
	switch {
	case !w.DeletionTimestamp.IsZero():
		kept, _ := of(workv1alpha1.WorkDeletionBlocked, metav1.ConditionTrue)
		return Progressing, cmp.Or(staleremoval.Shown(kept), Goes)
	case w.Annotations[propagation.FaultAnnotation] != "":
		return Failed, w.Annotations[propagation.FaultAnnotation]
	case failed && !Behind(w):
		return refused(refusal), refusal
	case !applied, Behind(w):
		return Progressing, ""
	case unread:
		return Progressing, fault
	case shownOf(w) == workv1alpha2.ResourceUnhealthy:
		return Progressing, PodsOf(w)
	case strayed && !known(w):
		return Progressing, Strayed + drift
	case strayed:
		return Healthy, Strayed + drift
	default:
		return Healthy, ""
	}
}

// LeavingPart returns the state in a cluster that has yet to remove the objects of a Work, with what keeps them.
func LeavingPart(cluster string, w *workv1alpha1.Work, silent Silences) ClusterPart {
	out := ClusterPart{Name: cluster, State: Progressing, Reason: "not removed yet"}
	if s, ok := silent[cluster]; ok {
		out.Reason += ": " + s.String()
	} else if c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkDeletionBlocked); c != nil && c.Status == metav1.ConditionTrue {
		out.Reason += ": " + staleremoval.Shown(c.Message)
	}
	return out
}

// NamespacePart returns the state of a Namespace in a cluster, by its Work. Nothing runs in a Namespace itself: if
// the cluster has reported that it has it, a silence since then counts for the objects in it only.
func NamespacePart(cluster string, w *workv1alpha1.Work, silent Silences) ClusterPart {
	state, reason := OfWork(w)
	out := ClusterPart{Name: cluster, State: state, Reason: cmp.Or(reason, notApplied)}
	if state == Healthy {
		out.Reason, out.Note = "", reason
		return out
	}
	if s, ok := silent[cluster]; ok {
		return out.unheard(s)
	}
	return out
}

// known reports whether a Work shows the state of its first object, which it does
// not if somebody removed the object.
func known(w *workv1alpha1.Work) bool {
	return shownOf(w) == workv1alpha2.ResourceHealthy || len(w.Status.ManifestStatuses) > 0 && w.Status.ManifestStatuses[0].Status != nil
}

// shownOf returns the health of a Work's first object; empty where it is not reported.
func shownOf(w *workv1alpha1.Work) workv1alpha2.ResourceHealth {
	if len(w.Status.ManifestStatuses) == 0 {
		return ""
	}
	return Shown(w.Status.ManifestStatuses[0].Health, w.Status.ManifestStatuses[0].Status)
}
