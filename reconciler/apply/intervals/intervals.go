// Package intervals says when Kustomizations are looked at again.
//
// In go Kustomizations and their names; out come times. It has no clock.
package intervals

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shortest keeps an interval of nothing from becoming a hot loop; sources
// have the same.
const shortest = time.Second

// Drift returns how often drift is looked for.
func Drift(ks *kustomizev1.Kustomization) time.Duration {
	return max(ks.Spec.Interval.Duration, shortest)
}

// Retry returns how soon a failure is tried again.
func Retry(ks *kustomizev1.Kustomization) time.Duration {
	return max(ks.GetRetryInterval(), shortest)
}

// jitter is how far an interval may be off, so that Kustomizations of one
// interval do not all come at once.
const jitter = 0.1

// Jittered returns the interval, off by up to the jitter, always the same for
// one name.
func Jittered(key client.ObjectKey, interval time.Duration) time.Duration {
	return interval + time.Duration(jitter*(share(key)-0.5)*float64(interval))
}

// Within returns a time within the interval, always the same for one name.
func Within(key client.ObjectKey, interval time.Duration) time.Duration {
	return time.Duration(share(key) * float64(interval))
}

// share maps a name to a number from 0 to 1.
func share(key client.ObjectKey) float64 {
	sum := sha256.Sum256([]byte(key.String()))
	return float64(binary.BigEndian.Uint32(sum[:4])) / float64(1<<32)
}
