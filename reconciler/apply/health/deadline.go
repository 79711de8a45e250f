package health

import (
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReasonClusterSilent says that health is not known, because a cluster does not report.
// The Kustomization is then neither ready nor failed.
const ReasonClusterSilent = "ClusterSilent"

// Deadline returns the time by which a revision has to be healthy: spec.timeout after
// its health became unknown. For a revision that has failed it is now.
func Deadline(ks *kustomizev1.Kustomization, revision string, now time.Time) time.Time {
	healthy := apimeta.FindStatusCondition(ks.Status.Conditions, meta.HealthyCondition)
	if healthy == nil || healthy.ObservedGeneration != ks.Generation || ks.Status.LastAttemptedRevision != revision {
		return now.Add(ks.GetTimeout())
	}
	switch healthy.Status {
	case metav1.ConditionFalse:
		return now
	case metav1.ConditionUnknown:
		if healthy.Reason == ReasonClusterSilent {
			return now.Add(ks.GetTimeout()) // the time that a cluster was silent does not count
		}
		return healthy.LastTransitionTime.Add(ks.GetTimeout())
	default:
		return now.Add(ks.GetTimeout())
	}
}

// Lost returns why there is no time left: the timeout is over, or a check failed earlier and has not
// recovered yet.
func Lost(ks *kustomizev1.Kustomization) string {
	const failed = "health check failed"
	over := failed + " after " + ks.GetTimeout().String()
	healthy := apimeta.FindStatusCondition(ks.Status.Conditions, meta.HealthyCondition)
	if healthy != nil && healthy.Status == metav1.ConditionFalse && !strings.HasPrefix(healthy.Message, over) {
		return failed
	}
	return over
}

// ReportsSilent reports whether the status of a Kustomization says that its health is not known, as clusters are silent.
func ReportsSilent(ks *kustomizev1.Kustomization) bool {
	ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
	return ready != nil && ready.Reason == ReasonClusterSilent
}
