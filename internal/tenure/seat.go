package tenure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

// ErrOccupied says that another program has the seat.
var ErrOccupied = errors.New("another program acts there")

// SeatOptions say which seat it is, and who wants it. All but Clock and Times are
// required.
type SeatOptions struct {
	// Config leads to where the Lease is.
	Config *rest.Config
	// Namespace and Name are those of the Lease.
	Namespace, Name string
	// Identity is who wants it: see Identity.
	Identity string
	// Times are those of the Lease; zero means 40 s, 30 s and 10 s.
	Times Times
	// Clock is the time; nil means the machine's.
	Clock clock.WithTicker
}

// Times are those of a lease.
type Times struct {
	// Lease is how long others wait after the last sign of whoever holds it, Deadline
	// how long that one goes on without a sign of its own arriving, and Retry how often
	// it is tried for, and renewed.
	Lease, Deadline, Retry time.Duration
}

// seatTimes cost a member one request in ten seconds.
func seatTimes() Times {
	return Times{Lease: 40 * time.Second, Deadline: 30 * time.Second, Retry: 10 * time.Second}
}

// LongestPoll is the longest that a seat which waits goes without looking whether the place
// is free: client-go spreads its looks, so that it is more than twice Retry.
func LongestPoll() time.Duration {
	return time.Duration(float64(seatTimes().Retry) * (1 + leaderelection.JitterFactor))
}

// Seat is for a program of which one may act at a time. Unlike a leader it goes on
// reading when it has lost its Lease, and takes it again when it can: a tenure is one
// turn of it. What it lets through is written during a turn. Use NewSeat.
type Seat struct {
	options SeatOptions

	mu      sync.Mutex
	turn    *Tenure // the present one, or the last
	end     context.CancelFunc
	since   time.Time // when the turn was wanted first
	other   string    // who has it, as last seen; empty: nobody else
	fault   error     // why that is not known; nil: it is
	open    bool      // there can be no Lease: nobody is kept out
	met     bool      // a holder was found once, or it was had
	refused time.Time // since when no Lease can be looked at; zero: it can
	gone    time.Time // since when there is none; zero: there is, or it is not known
	wanted  bool
	asked   bool          // something is known, or why it is not
	changed chan struct{} // closed with the next change of these
}

// NewSeat returns a seat that nobody has yet. Run competes for it.
func NewSeat(o SeatOptions) *Seat {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Times == (Times{}) {
		o.Times = seatTimes()
	}
	return &Seat{options: o, turn: New(o.Clock), wanted: true, changed: make(chan struct{})}
}

// Run competes for the seat until ctx ends, and gives it up then.
func (s *Seat) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		s.mu.Lock()
		wanted, changed := s.wanted, s.changed
		s.mu.Unlock()
		if wanted {
			if err := s.sit(ctx); err != nil {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	return nil
}

// sit competes for one turn, and ends with it.
func (s *Seat) sit(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	times := s.options.Times
	config := rest.AddUserAgent(s.options.Config, "seat")
	config.Timeout = times.Deadline / 3 //nolint:mnd // one request that hangs loses nothing
	client, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to the lease: %w", err)
	}
	turn := New(s.options.Clock)
	turn.deadline = times.Deadline
	lock := &seatLock{seat: s, Lock: Lock{tenure: turn, longest: mostLeases * times.Lease, Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: s.options.Namespace, Name: s.options.Name},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: s.options.Identity},
	}}}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: times.Lease, RenewDeadline: times.Deadline, RetryPeriod: times.Retry, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return fmt.Errorf("compete for the lease: %w", err)
	}
	s.change(func() {
		s.turn, s.end, s.since = turn, cancel, s.options.Clock.Now()
		if !s.wanted {
			cancel()
		}
	})
	go func() { // a turn that is over, as of a process that was stopped, renews nothing: the next one begins at once
		select {
		case <-ctx.Done():
		case <-turn.over:
			cancel()
		}
	}()
	elector.Run(ctx)
	turn.end(errGivenUp)
	s.change(func() {})
	return nil
}

// change changes what is known, and tells.
func (s *Seat) change(how func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Changed is closed with the next change of what Holds and Occupied say, but for a
// turn that lapses.
func (s *Seat) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Check errs unless the seat is held for certain, now. Errors: ErrOccupied, ErrUnseated,
// and ErrOver with why it is not known who has it.
func (s *Seat) Check() error {
	s.mu.Lock()
	turn, other, fault, open, since := s.turn, s.other, s.fault, s.open, s.since
	s.mu.Unlock()
	err := turn.Holds()
	if lost := turn.lost(); lost.After(since) {
		since = lost
	}
	lasting := s.options.Clock.Since(since) >= s.options.Times.Deadline // a fault that passes is not told
	switch {
	case err == nil || open:
		return nil
	case other != "":
		return fmt.Errorf("%w: %s", ErrOccupied, other)
	case fault != nil && lasting:
		return fmt.Errorf("%w: %w", ErrOver, fault)
	}
	return unseated(err)
}

// unseated tells the end of a turn, after which there may be another one, from that of a
// leader.
func unseated(err error) error {
	if errors.Is(err, ErrOver) {
		return fmt.Errorf("%w: %w", ErrUnseated, err)
	}
	return err
}

// Occupied is who has the seat, as last seen; empty if that is nobody else, or not
// known.
func (s *Seat) Occupied() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.other
}

// Await returns nil once the seat is had, or once it cannot be found out who has it:
// nothing is let through then, and who waits may see to what can be seen. Told is
// called with each other one who is found to have it. Errors: ctx'.
func (s *Seat) Await(ctx context.Context, reported func(holder string)) error {
	last := ""
	for {
		changed := s.Changed()
		s.mu.Lock()
		other, asked := s.other, s.asked
		s.mu.Unlock()
		if asked && other == "" {
			return nil
		}
		if other != last {
			last = other
			reported(other)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// Yield gives the seat up, until Want.
func (s *Seat) Yield() {
	s.mu.Lock()
	end, wanted := s.end, s.wanted
	s.mu.Unlock()
	if !wanted {
		return
	}
	s.change(func() { s.wanted = false })
	if end != nil {
		end()
	}
}

// Want competes for the seat again.
func (s *Seat) Want() {
	s.mu.Lock()
	wanted := s.wanted
	s.mu.Unlock()
	if !wanted {
		s.change(func() { s.wanted = true })
	}
}

// see keeps who else was found to have the seat, or why that is not known: what the latest
// try says. Where the Lease is refused, or there are no Leases, everybody may sit.
func (s *Seat) see(holder string, fault error) {
	s.mu.Lock()
	open := s.opens(fault)
	same := s.asked && s.other == holder && (s.fault == nil) == (fault == nil) && s.open == open
	s.fault = fault
	s.mu.Unlock()
	if same { // that it is worded otherwise is no news
		return
	}
	s.change(func() {
		s.asked, s.open = true, open
		if fault == nil || open {
			s.other = holder // else it is as it was, as far as anybody knows
		}
	})
}

// opens reports whether there can be no Lease. A member that had one, and refuses it for
// less time than others wait for its holder, may do so in passing: rights that are made
// anew, or a server that has not read them yet. mu is held.
func (s *Seat) opens(fault error) bool {
	s.met = s.met || fault == nil
	if !apierrors.IsForbidden(fault) && !apierrors.IsNotFound(fault) && !apierrors.IsMethodNotSupported(fault) {
		s.refused = time.Time{}
		return false
	}
	now := s.options.Clock.Now()
	if s.refused.IsZero() {
		s.refused = now
	}
	return !s.met || now.Sub(s.refused) >= s.options.Times.Lease
}

// miss keeps since when there is no Lease.
func (s *Seat) miss(gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !gone:
		s.gone = time.Time{}
	case s.gone.IsZero():
		s.gone = s.options.Clock.Now()
	}
}

// vacant errs while another one that had the seat may not know yet that its Lease was
// deleted: it is waited for as for one that is silent.
func (s *Seat) vacant() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := s.options.Times.Lease - s.options.Clock.Since(s.gone); s.other != "" && left > 0 {
		return fmt.Errorf("%w: %s had the lease that was deleted, and is waited for: %s are left", ErrOccupied, s.other, left)
	}
	return nil
}

// seatLock is the Lease of a seat, which is told what becomes of it.
type seatLock struct {
	Lock
	seat *Seat
}

// Get implements resourcelock.Interface.
func (l *seatLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Lock.Get(ctx)
	l.seat.miss(apierrors.IsNotFound(err))
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		l.seat.see("", err)
	case err == nil && record.HolderIdentity != "" && record.HolderIdentity != l.Identity():
		l.seat.see(record.HolderIdentity, nil)
	}
	return record, raw, err // that it is free is told once it is had
}

// Create implements resourcelock.Interface.
func (l *seatLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := l.seat.vacant(); err != nil {
		return err
	}
	return l.wrote(l.Lock.Create(ctx, record), record)
}

// Update implements resourcelock.Interface.
func (l *seatLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.wrote(l.Lock.Update(ctx, record), record)
}

func (l *seatLock) wrote(err error, record resourcelock.LeaderElectionRecord) error {
	switch {
	case errors.Is(err, ErrOver): // nothing was asked: the next turn finds out
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err): // who was quicker is found out next
	case record.HolderIdentity != "":
		l.seat.see("", err)
	}
	return err
}

// Member returns a transport for writes that end with the turn. Reads pass.
func (s *Seat) Member(next http.RoundTripper) http.RoundTripper { return &seatCarrier{s, next} }

type seatCarrier struct {
	seat *Seat
	next http.RoundTripper
}

// WrappedRoundTripper lets callers find the transport below.
func (c *seatCarrier) WrappedRoundTripper() http.RoundTripper { return c.next }

// RoundTrip implements http.RoundTripper. Errors: ErrOccupied, ErrUnseated, ErrOver.
func (c *seatCarrier) RoundTrip(req *http.Request) (*http.Response, error) {
	if reads(req) {
		resp, err := c.next.RoundTrip(req)
		if errors.Is(err, ErrUnseated) { // the connection was for a turn that is over
			resp, err = c.next.RoundTrip(req)
		}
		return resp, err
	}
	if err := c.seat.Check(); err != nil {
		return refuse(req, err)
	}
	c.seat.mu.Lock()
	turn, open := c.seat.turn, c.seat.open
	c.seat.mu.Unlock()
	if open {
		return c.next.RoundTrip(req)
	}
	resp, err := (&memberCarrier{turn, c.next}).RoundTrip(req)
	if err != nil {
		return nil, unseated(err)
	}
	return resp, nil
}

// current returns the turn that is held for certain, now; nil if none is.
func (s *Seat) current() *Tenure {
	s.mu.Lock()
	turn := s.turn
	s.mu.Unlock()
	if turn.Holds() != nil {
		return nil
	}
	return turn
}

// Dial returns a way to make connections of which each is for one turn, or for what is
// read between two: what a process had encrypted and not sent when it was stopped stays
// with it. Dial nil means the machine's network.
func (s *Seat) Dial(dial DialFunc) DialFunc {
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		of := s.current()
		inner, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &seatConn{inner, s, of}, nil
	}
}

type seatConn struct {
	net.Conn
	seat *Seat
	of   *Tenure // nil: none
}

// Write implements io.Writer.
func (c *seatConn) Write(content []byte) (int, error) {
	if c.seat.current() != c.of {
		return 0, fmt.Errorf("send to %s: %w", c.RemoteAddr(), errors.Join(ErrUnseated, ErrOver, c.Close()))
	}
	return c.Conn.Write(content)
}
