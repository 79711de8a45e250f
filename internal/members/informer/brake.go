package informer

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/flowcontrol"
)

// A entry may ask burst questions at once, and then qps a second. One that stands asks
// once in minutes; where lists and watches end as soon as they begin, as with a member that
// calls each version expired, client-go asks again without a pause.
const (
	burst = 10
	qps   = 0.5
)

// brake slows the questions of one entry down.
type brake struct{ limiter flowcontrol.RateLimiter }

func newBrake() brake { return brake{flowcontrol.NewTokenBucketRateLimiter(qps, burst)} }

// wait waits for the next question. Errors: that ctx ended.
func (b brake) wait(ctx context.Context) error { return b.limiter.Wait(ctx) }

// A entry reads all from the beginning once, and again where its version is called expired.
// One that has done so restlessOf times within restlessIn, the last time less than
// restlessFor ago, has no watch that stands: what happens in between is seen by none.
const (
	restlessOf  = 4
	restlessIn  = 5 * time.Minute
	restlessFor = 90 * time.Second
)

// begin notes that the member shows all from the beginning. What it refuses does not
// count: a member that was away would be out of entry for restlessFor more.
func (s *entry) begin(w *kindWatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.begun = append(s.begun, s.clock.Now())
	s.begun = s.begun[max(0, len(s.begun)-restlessOf):]
}

// restless reports whether the entry has no watch that stands. The lock of its kind is held.
func (s *entry) restless() bool {
	return len(s.begun) == restlessOf && s.clock.Since(s.begun[0]) < restlessIn && s.clock.Since(s.begun[restlessOf-1]) < restlessFor
}

// Blind is a kind that cannot be read in a member although the member serves it.
type Blind struct {
	Kind schema.GroupVersionKind
	// Why is a few words of our own: what a member answers may be anything.
	Why string
}

// errRestless is of a kind that is read from the beginning all the time.
var errRestless = errors.New("its watch ends as soon as it begins")

// blind says why a kind has not been readable for at least a time; nil if it is.
func blind(w *kindWatch, least time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.current
	switch {
	case s == nil || w.unserved:
		return nil
	case s.broken && w.clock.Since(s.since) >= least:
		return s.fault
	case s.restless() && w.clock.Since(s.begun[0]) >= least:
		return errRestless
	}
	return nil
}

// why is a fault in a few words of our own.
func why(err error) string {
	switch {
	case errors.Is(err, errRestless), apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return errRestless.Error()
	case apierrors.IsForbidden(err):
		return "the control plane may not list or watch it there"
	case apierrors.IsUnauthorized(err):
		return "the credentials are refused"
	case apierrors.IsInternalError(err), apierrors.IsServiceUnavailable(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsTooManyRequests(err):
		return "the cluster's API server fails to list or watch it"
	default:
		return "it cannot be listed or watched there"
	}
}
