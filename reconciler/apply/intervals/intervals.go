// Package intervals returns how long it is until a Kustomization is reconciled again.
//
// In go Kustomizations and their names; out come durations. It has no clock.
package intervals

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shortest keeps an interval of zero from becoming a hot loop. Sources have the same
// bound.
const shortest = time.Second

// Drift returns the interval between checks for drift.
func Drift(ks *kustomizev1.Kustomization) time.Duration {
	return max(ks.Spec.Interval.Duration, shortest)
}

// Retry returns the pause before a failed revision is tried again.
func Retry(ks *kustomizev1.Kustomization) time.Duration {
	return max(ks.GetRetryInterval(), shortest)
}

// jitter is the width of the range in which an interval is spread, as a share of it, so
// that Kustomizations with the same interval do not all run at once.
const jitter = 0.1

// Jittered returns the interval, shorter or longer by up to half of the jitter, always
// the same for one name.
func Jittered(key client.ObjectKey, interval time.Duration) time.Duration {
	return interval + time.Duration(jitter*(share(key)-0.5)*float64(interval))
}

// Within returns a part of the interval, always the same for one name.
func Within(key client.ObjectKey, interval time.Duration) time.Duration {
	return time.Duration(share(key) * float64(interval))
}

// share maps a name to a number from 0 to below 1, evenly spread.
func share(key client.ObjectKey) float64 {
	sum := sha256.Sum256([]byte(key.String()))
	return float64(binary.BigEndian.Uint32(sum[:4])) / float64(1<<32)
}
