package apply

import (
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
)

const (
	// minInterval keeps an interval of nothing from becoming a hot loop; sources
	// have the same.
	minInterval = time.Second
	// longestRun bounds a run, whatever the Kustomization's timeout is: health is
	// waited for between runs.
	longestRun = time.Hour
)

// intervalOf returns how often drift is looked for.
func intervalOf(ks *kustomizev1.Kustomization) time.Duration {
	return max(ks.Spec.Interval.Duration, minInterval)
}

// retryOf returns how soon a failure is tried again.
func retryOf(ks *kustomizev1.Kustomization) time.Duration {
	return max(ks.GetRetryInterval(), minInterval)
}
