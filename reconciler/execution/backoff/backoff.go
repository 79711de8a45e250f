package backoff

import (
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The first freeCorrections corrections of one Work's objects are made at once.
// After that each one waits twice as long as the one before, up to longestPause. The
// count starts again after a time of forgiven without corrections.
const (
	freeCorrections = 3
	firstPause      = time.Second
	longestPause    = 5 * time.Minute
	forgiven        = 10 * time.Minute
)

// A Work that failed is tried again after FirstRetry, then twice that, up to
// LastRetry.
const (
	// FirstRetry and LastRetry bound the wait.
	FirstRetry = 50 * time.Millisecond
	LastRetry  = 5 * time.Minute
)

// Retries returns how long Works that failed wait until they are tried again.
func Retries() workqueue.TypedRateLimiter[client.ObjectKey] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[client.ObjectKey](FirstRetry, LastRetry)
}

// ErrPaused says that an object was changed again after each correction, and differs until the
// next correction.
var ErrPaused = errors.New("it is changed again each time that it is put back: the next time is after a pause, of five minutes at most; see who writes it")

// Backoff counts corrections by Work. It is safe for use by several goroutines. It is no rate
// limiter of client-go, as those have neither free first corrections nor a reset by time, and
// cannot return why an object waits.
type Backoff struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	runs map[client.ObjectKey]run
}

type run struct {
	count    int
	last     time.Time
	reported time.Time
	// failed is why the last correction of each object that was tried did not work.
	failed map[int]error
}

// New returns a Backoff that has seen no corrections.
func New(c clock.PassiveClock) *Backoff {
	return &Backoff{clock: c, runs: map[client.ObjectKey]run{}}
}

// Due returns how long the next correction has to wait.
func (b *Backoff) Due(key client.ObjectKey) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, ok := b.runs[key]
	since := b.clock.Since(r.last)
	if !ok || r.count < freeCorrections || since > forgiven {
		return 0
	}
	pause := longestPause
	if n := r.count - freeCorrections; n < 9 {
		pause = min(longestPause, firstPause<<n)
	}
	return max(0, pause-since)
}

// Ran counts a correction.
func (b *Backoff) Ran(key client.ObjectKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[key]
	if b.clock.Since(r.last) > forgiven {
		r.count = 0
	}
	r.count, r.last = r.count+1, b.clock.Now()
	b.runs[key] = r
}

// Failed records why the correction of a Work's object, by its ordinal, failed; nil
// if it did not.
func (b *Backoff) Failed(key client.ObjectKey, ordinal int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[key]
	switch {
	case err == nil:
		delete(r.failed, ordinal)
	case r.failed == nil:
		r.failed = map[int]error{ordinal: err}
	default:
		r.failed[ordinal] = err
	}
	b.runs[key] = r
}

// Why returns why a Work's object that waits for its next correction differs: the error of the last
// correction, or ErrPaused.
func (b *Backoff) Why(key client.ObjectKey, ordinal int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.runs[key].failed[ordinal]; err != nil {
		return err
	}
	return ErrPaused
}

// MayReport reports whether an event may be emitted, as the last one is long enough ago. If so, it counts as emitted.
func (b *Backoff) MayReport(key client.ObjectKey) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[key]
	if !r.reported.IsZero() && b.clock.Since(r.reported) <= forgiven {
		return false
	}
	r.reported = b.clock.Now()
	b.runs[key] = r
	return true
}

// Forget drops what is kept of a Work that is gone.
func (b *Backoff) Forget(key client.ObjectKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.runs, key)
}
