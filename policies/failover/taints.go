package failover

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// Tolerates reports whether one of the tolerations matches the taint.
func Tolerates(taint *corev1.Taint, tolerations []corev1.Toleration) bool {
	for i := range tolerations {
		if matches(taint, &tolerations[i]) {
			return true
		}
	}
	return false
}

func matches(taint *corev1.Taint, t *corev1.Toleration) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case corev1.TolerationOpExists:
		return true
	case "", corev1.TolerationOpEqual:
		return t.Key != "" && t.Value == taint.Value
	default:
		return false
	}
}

// since is when a taint was added: now where it does not say, or names a time to come, as one does that was dated by a clock ahead of
// this one.
func since(taint *corev1.Taint, now time.Time) time.Time {
	if taint.TimeAdded == nil || taint.TimeAdded.After(now) {
		return now
	}
	return taint.TimeAdded.Time
}

// toleratedUntil returns from when on the taint is not tolerated, and false where
// it is tolerated for good. Of several tolerations the shortest counts; a
// negative one ends at once.
func (r Rules) toleratedUntil(taint *corev1.Taint, tolerations []corev1.Toleration, now time.Time) (time.Time, bool) {
	since := since(taint, now)
	matched, limited := false, false
	var least int64
	for i := range tolerations {
		t := &tolerations[i]
		if !matches(taint, t) {
			continue
		}
		matched = true
		if s := t.TolerationSeconds; s != nil && (!limited || *s < least) {
			limited, least = true, *s
		}
	}
	switch {
	case limited:
		// A time.Duration holds 292 years at most: what is longer counts as for
		// good.
		if least > int64(longest/time.Second) {
			return time.Time{}, false
		}
		return since.Add(time.Duration(max(least, 0)) * time.Second), true
	case matched:
		return time.Time{}, false
	case ofLoss(taint):
		return since.Add(r.Tolerance), true
	default:
		return since, true
	}
}

// longest is the longest time that is not for good.
const longest = 100 * 365 * 24 * time.Hour

// times returns d so many times, and no more than the longest time: what a time.Duration does not hold would be the past.
func times(d time.Duration, n int64) time.Duration {
	if d > longest/time.Duration(n) {
		return longest
	}
	return d * time.Duration(n)
}

// ofLoss reports whether a taint shows that a cluster is not ready or not
// reachable.
func ofLoss(taint *corev1.Taint) bool {
	return taint.Key == clusterv1alpha1.TaintClusterNotReady || taint.Key == clusterv1alpha1.TaintClusterUnreachable
}
