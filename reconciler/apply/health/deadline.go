package health

import (
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReasonClusterSilent says that health is not known, because nothing is heard of a
// cluster. It is neither ready nor failed.
const ReasonClusterSilent = "ClusterSilent"

// Deadline is until when a revision may take to become healthy: counted
// from when the health of this revision became unknown. One that has failed
// has no time left.
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
			return now.Add(ks.GetTimeout()) // nobody could see whether it took its time
		}
		return healthy.LastTransitionTime.Add(ks.GetTimeout())
	default:
		return now.Add(ks.GetTimeout())
	}
}

// Lost says why there is no time left: it is over, or something failed before, and has yet
// to recover.
func Lost(ks *kustomizev1.Kustomization) string {
	const failed = "health check failed"
	over := failed + " after " + ks.GetTimeout().String()
	healthy := apimeta.FindStatusCondition(ks.Status.Conditions, meta.HealthyCondition)
	if healthy != nil && healthy.Status == metav1.ConditionFalse && !strings.HasPrefix(healthy.Message, over) {
		return failed
	}
	return over
}
