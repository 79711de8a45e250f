package tenure

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// LeaseDuration is how long others wait after the last sign of whoever holds the
	// lease, RenewDeadline how long that one goes on without a sign of its own
	// arriving. What lies between is for clocks that run at different rates.
	LeaseDuration = 15 * time.Second
	RenewDeadline = 10 * time.Second
	// RetryPeriod is how often the lease is tried for, and renewed.
	RetryPeriod = 2 * time.Second
	// watchPeriod is how often Watch checks whether the tenure has lapsed.
	watchPeriod = 500 * time.Millisecond
)

// ErrOver says that a write was not sent, or its answer is not known, because the
// process that wanted it does not hold the lease, or not for certain. Another replica
// does what is left to do.
var ErrOver = errors.New("this replica does not hold the lease any more")

// ErrLeaseLost says the same of a program that acquires its MemberLease again by itself:
// it waits, and has found out nothing about the member. It comes with ErrOver.
var ErrLeaseLost = errors.New("this program has to get its place in the cluster again")

// errGivenUp is why a tenure is over that was given up.
var errGivenUp = errors.New("it was given up")

// Tenure is the time for which a process holds the lease, once. Its methods may be
// called at the same time.
type Tenure struct {
	clock    clock.WithTicker
	deadline time.Duration // how long it goes on without a renewal
	over     chan struct{} // closed when it is over for good

	mu       sync.Mutex
	epoch    string    // empty until it begins
	until    time.Time // with its monotonic reading
	why      error     // once it is over
	noticed  time.Time // when that was found out
	inFlight int       // writes to members that were not answered yet
	doubt    time.Time // until when a write without an answer may still take effect
}

// New returns a tenure that has not begun.
func New(c clock.WithTicker) *Tenure {
	return &Tenure{clock: c, deadline: RenewDeadline, over: make(chan struct{})}
}

// begin starts the tenure. Since is when the write was sent that took the lease.
func (t *Tenure) begin(epoch string, since time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why != nil {
		return t.ended()
	}
	t.epoch, t.until = epoch, since.Add(t.deadline)
	return t.check()
}

// renewed extends the tenure. Since is when the write was sent that renewed
// the lease.
func (t *Tenure) renewed(since time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.check(); err != nil {
		return err
	}
	t.until = since.Add(t.deadline)
	return nil
}

// ends returns why a tenure is over; nil before it has begun, and while it lasts.
func (t *Tenure) ends() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.check()
}

// check ends a lapsed tenure, and returns why one is over. mu is held.
func (t *Tenure) check() error {
	if t.why == nil && t.epoch != "" && !t.clock.Now().Before(t.until) {
		t.stop(fmt.Errorf("it was not renewed within %s", t.deadline))
	}
	if t.why != nil {
		return t.ended()
	}
	return nil
}

func (t *Tenure) ended() error { return fmt.Errorf("%w: %w", ErrOver, t.why) }

// stop ends the tenure for good. mu is held.
func (t *Tenure) stop(why error) {
	if t.why == nil {
		t.why, t.noticed = why, t.clock.Now()
		close(t.over)
	}
}

// lost is when it was noticed that the tenure is over; zero: it is not.
func (t *Tenure) lost() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.noticed
}

// end ends the tenure for good.
func (t *Tenure) end(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop(why)
}

// begun reports whether the tenure has begun; it may be over.
func (t *Tenure) begun() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.epoch != ""
}

// giveUp ends the tenure. It returns an error if a write may still take effect:
// others have to wait then as if the process had died.
func (t *Tenure) giveUp() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop(errGivenUp)
	switch {
	case t.inFlight > 0:
		return fmt.Errorf("%d writes to members are under way: the lease is left to lapse", t.inFlight)
	case t.clock.Now().Before(t.doubt):
		return errors.New("a write to a member that was not answered may still take effect: the lease is left to lapse")
	}
	return nil
}

// Holds returns nil if the lease is certainly held now, and otherwise why not.
func (t *Tenure) Holds() error {
	_, _, err := t.now()
	return err
}

// now returns the epoch and how long the lease is held for certain from now on.
func (t *Tenure) now() (epoch string, left time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.check(); err != nil {
		return "", 0, err
	}
	if t.epoch == "" {
		return "", 0, fmt.Errorf("%w: it has not got it yet", ErrOver)
	}
	return t.epoch, t.until.Sub(t.clock.Now()), nil
}

// enter begins a write to a member: leave must be called once, when it is over.
func (t *Tenure) enter() (left time.Duration, leave func(answered bool), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.check(); err != nil {
		return 0, nil, err
	}
	if t.epoch == "" {
		return 0, nil, fmt.Errorf("%w: it has not got it yet", ErrOver)
	}
	t.inFlight++
	latest := t.until
	return latest.Sub(t.clock.Now()), func(answered bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.inFlight--
		if !answered && latest.After(t.doubt) {
			t.doubt = latest
		}
	}, nil
}

// Watch returns when the tenure is over, with why, or with nil when ctx ends before.
// One that was given up is over without a reason.
func (t *Tenure) Watch(ctx context.Context) error {
	ticker := t.clock.NewTicker(watchPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.over:
			return t.Lost()
		case <-ticker.C():
			_ = t.Holds() // ends one that has lapsed
		}
	}
}

// Lost returns why the tenure is over without having been given up; nil if it is not.
func (t *Tenure) Lost() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.check(); err != nil && !errors.Is(err, errGivenUp) {
		return err
	}
	return nil
}
