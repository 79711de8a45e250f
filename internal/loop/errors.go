package loop

import (
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/internal/tenure"
)

// Error is an outcome that is reported to people and clients: a stable reason
// and what to do next.
type Error struct {
	// Reason is the CamelCase reason of the condition that reports this.
	Reason string
	// Class says who has to act.
	Class Class
	// After is when to look again; only read for ClassWaiting.
	After time.Duration
	// Err is the cause; its text becomes the condition's message.
	Err error
}

// Class says who has to act on an Error.
type Class int

const (
	// ClassRetry is a fault that may pass: try again with back-off.
	ClassRetry Class = iota
	// ClassWaiting needs another object first: look again after a while.
	ClassWaiting
	// ClassStalled needs a person: nothing is tried until the object changes.
	ClassStalled
)

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Stalled marks err as one that a person must act on.
func Stalled(reason string, err error) error {
	return &Error{Reason: reason, Class: ClassStalled, Err: err}
}

// Waiting marks err as one that another object will resolve; the loop looks
// again after the given time.
func Waiting(reason string, after time.Duration, err error) error {
	return &Error{Reason: reason, Class: ClassWaiting, After: after, Err: err}
}

// Retry gives a fault that may pass the reason that its condition shows.
func Retry(reason string, err error) error {
	return &Error{Reason: reason, Class: ClassRetry, Err: err}
}

// onceMore is when to retry after the lease has ended. By then the loops have
// stopped, unless the hub is out of reach.
const onceMore = 15 * time.Second

// As returns the outermost Error in err's chain. An err without one is a fault
// that may pass, with the given reason; that a lease has ended is always one that
// waits, for the replica that holds it. It returns nil for nil.
func As(err error, reason string) *Error {
	if err == nil {
		return nil
	}
	if errors.Is(err, tenure.ErrOver) {
		return &Error{Reason: reason, Class: ClassWaiting, After: onceMore, Err: err}
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Reason: reason, Class: ClassRetry, Err: err}
}

// Result converts what Run returned into what controller-runtime expects: stalled
// errors set no timer, waiting ones theirs, and all others back off.
func Result(next Next, err error) (reconcile.Result, error) {
	e := As(err, "")
	switch {
	case e == nil:
		return reconcile.Result{RequeueAfter: next.After}, nil
	case e.Class == ClassStalled:
		return reconcile.Result{}, nil
	case e.Class == ClassWaiting:
		return reconcile.Result{RequeueAfter: soonest(next.After, e.After)}, nil
	default:
		return reconcile.Result{}, err
	}
}
