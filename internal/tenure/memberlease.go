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

// ErrHeldByOther says that another program holds the member's Lease.
var ErrHeldByOther = errors.New("another program acts there")

// MemberLeaseOptions name the Lease and who competes for it. All but Clock and Timings are
// required.
type MemberLeaseOptions struct {
	// Config leads to where the Lease is.
	Config *rest.Config
	// Namespace and Name are those of the Lease.
	Namespace, Name string
	// Identity is who wants it: see Identity.
	Identity string
	// Timings are those of the Lease; zero means 40 s, 30 s and 10 s.
	Timings Timings
	// Clock is the time; nil means the machine's.
	Clock clock.WithTicker
}

// Timings are those of client-go's elector, by the same names.
type Timings struct {
	// LeaseDuration is how long others wait after the holder's last renewal,
	// RenewDeadline how long the holder goes on acting without a renewal that succeeds,
	// and RetryPeriod how often the Lease is tried for, and renewed.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// defaultTimings cost a member one request in ten seconds.
func defaultTimings() Timings {
	return Timings{LeaseDuration: 40 * time.Second, RenewDeadline: 30 * time.Second, RetryPeriod: 10 * time.Second}
}

// LongestPoll is the longest time between two checks of a waiting MemberLease whether the
// Lease is free: client-go adds jitter, so that it is more than twice RetryPeriod.
func LongestPoll() time.Duration {
	return time.Duration(float64(defaultTimings().RetryPeriod) * (1 + leaderelection.JitterFactor))
}

// MemberLease is a Lease in a member cluster, for a program of which only one instance may
// write there at a time. Unlike a leader, the program goes on reading when it has lost the
// Lease, and acquires it again when it can: a Tenure is one turn of holding it. Writes pass
// only during a turn. Use NewMemberLease.
type MemberLease struct {
	options MemberLeaseOptions

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

// NewMemberLease returns a MemberLease that is not held yet. Run competes for it.
func NewMemberLease(o MemberLeaseOptions) *MemberLease {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Timings == (Timings{}) {
		o.Timings = defaultTimings()
	}
	return &MemberLease{options: o, turn: New(o.Clock), wanted: true, changed: make(chan struct{})}
}

// Run competes for the Lease until ctx ends, and releases it then.
func (s *MemberLease) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		s.mu.Lock()
		wanted, changed := s.wanted, s.changed
		s.mu.Unlock()
		if wanted {
			if err := s.compete(ctx); err != nil {
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

// compete competes for one turn, and returns when the turn is over.
func (s *MemberLease) compete(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	times := s.options.Timings
	config := rest.AddUserAgent(s.options.Config, "member-lease")
	config.Timeout = times.RenewDeadline / 3 //nolint:mnd // one request that hangs loses nothing
	client, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to the lease: %w", err)
	}
	turn := New(s.options.Clock)
	turn.deadline = times.RenewDeadline
	lock := &memberLeaseLock{memberLease: s, Lock: Lock{tenure: turn, longest: mostLeases * times.LeaseDuration, Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: s.options.Namespace, Name: s.options.Name},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: s.options.Identity},
	}}}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: times.LeaseDuration, RenewDeadline: times.RenewDeadline, RetryPeriod: times.RetryPeriod, ReleaseOnCancel: true,
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

// change updates what is known, under the lock, and wakes whoever waits on Changed.
func (s *MemberLease) change(how func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Changed is closed with the next change of what Check and OtherHolder return. A turn that
// lapses does not close it: nothing is received then, time has passed.
func (s *MemberLease) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Check returns an error unless the Lease is certainly held now. Errors: ErrHeldByOther,
// ErrLeaseLost, and ErrOver with the reason why the holder is not known.
func (s *MemberLease) Check() error {
	s.mu.Lock()
	turn, other, fault, open, since := s.turn, s.other, s.fault, s.open, s.since
	s.mu.Unlock()
	err := turn.Holds()
	if lost := turn.lost(); lost.After(since) {
		since = lost
	}
	lasting := s.options.Clock.Since(since) >= s.options.Timings.RenewDeadline // a short fault is not reported
	switch {
	case err == nil || open:
		return nil
	case other != "":
		return fmt.Errorf("%w: %s", ErrHeldByOther, other)
	case fault != nil && lasting:
		return fmt.Errorf("%w: %w", ErrOver, fault)
	}
	return leaseLost(err)
}

// leaseLost distinguishes the end of a turn, after which there may be another one, from the
// end of a leader's.
func leaseLost(err error) error {
	if errors.Is(err, ErrOver) {
		return fmt.Errorf("%w: %w", ErrLeaseLost, err)
	}
	return err
}

// OtherHolder is the other program that holds the Lease, as last seen; empty if there is
// none, or the holder is not known.
func (s *MemberLease) OtherHolder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.other
}

// Await returns nil once the Lease is held, or once the holder cannot be found out: writes
// are refused then, but the caller can go on reading. Reported is called with each other
// holder that is found. Errors: those of ctx.
func (s *MemberLease) Await(ctx context.Context, reported func(holder string)) error {
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

// Yield releases the Lease and stops competing for it, until Want.
func (s *MemberLease) Yield() {
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

// Want competes for the Lease again.
func (s *MemberLease) Want() {
	s.mu.Lock()
	wanted := s.wanted
	s.mu.Unlock()
	if !wanted {
		s.change(func() { s.wanted = true })
	}
}

// see records the other holder that the latest try found, or why the holder is not known.
// Where reading the Lease is forbidden, or the member has no Leases, everybody may act.
func (s *MemberLease) see(holder string, fault error) {
	s.mu.Lock()
	open := s.opens(fault)
	same := s.asked && s.other == holder && (s.fault == nil) == (fault == nil) && s.open == open
	s.fault = fault
	s.mu.Unlock()
	if same { // an error that only reads differently wakes nobody
		return
	}
	s.change(func() {
		s.asked, s.open = true, open
		if fault == nil || open {
			s.other = holder // else it is as it was, as far as anybody knows
		}
	})
}

// opens reports whether the member cannot have a Lease, so that nobody is kept out. A member
// that served one before may refuse it only for a moment, while its RBAC rules are recreated
// or its API server has not read them yet: a refusal counts once it has lasted as long as
// others wait for a holder. mu is held.
func (s *MemberLease) opens(fault error) bool {
	s.met = s.met || fault == nil
	if !apierrors.IsForbidden(fault) && !apierrors.IsNotFound(fault) && !apierrors.IsMethodNotSupported(fault) {
		s.refused = time.Time{}
		return false
	}
	now := s.options.Clock.Now()
	if s.refused.IsZero() {
		s.refused = now
	}
	return !s.met || now.Sub(s.refused) >= s.options.Timings.LeaseDuration
}

// miss records since when there is no Lease.
func (s *MemberLease) miss(gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !gone:
		s.gone = time.Time{}
	case s.gone.IsZero():
		s.gone = s.options.Clock.Now()
	}
}

// vacant returns an error while the former holder may not know yet that its Lease was
// deleted: it is given as much time as one that has stopped renewing.
func (s *MemberLease) vacant() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := s.options.Timings.LeaseDuration - s.options.Clock.Since(s.gone); s.other != "" && left > 0 {
		return fmt.Errorf("%w: %s had the lease that was deleted, and is waited for: %s are left", ErrHeldByOther, s.other, left)
	}
	return nil
}

// memberLeaseLock is the elector's lock of a MemberLease, and reports to it what it finds.
type memberLeaseLock struct {
	Lock
	memberLease *MemberLease
}

// Get implements resourcelock.Interface.
func (l *memberLeaseLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Lock.Get(ctx)
	l.memberLease.miss(apierrors.IsNotFound(err))
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		l.memberLease.see("", err)
	case err == nil && record.HolderIdentity != "" && record.HolderIdentity != l.Identity():
		l.memberLease.see(record.HolderIdentity, nil)
	}
	return record, raw, err // that it is free is recorded once it is acquired
}

// Create implements resourcelock.Interface.
func (l *memberLeaseLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := l.memberLease.vacant(); err != nil {
		return err
	}
	return l.wrote(l.Lock.Create(ctx, record), record)
}

// Update implements resourcelock.Interface.
func (l *memberLeaseLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.wrote(l.Lock.Update(ctx, record), record)
}

func (l *memberLeaseLock) wrote(err error, record resourcelock.LeaderElectionRecord) error {
	switch {
	case errors.Is(err, ErrOver): // nothing was asked: the next turn finds out
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err): // who was quicker is found out next
	case record.HolderIdentity != "":
		l.memberLease.see("", err)
	}
	return err
}

// Member returns a transport for writes that end with the turn. Reads pass.
func (s *MemberLease) Member(next http.RoundTripper) http.RoundTripper {
	return &memberLeaseCarrier{s, next}
}

type memberLeaseCarrier struct {
	memberLease *MemberLease
	next        http.RoundTripper
}

// WrappedRoundTripper lets callers find the transport below.
func (c *memberLeaseCarrier) WrappedRoundTripper() http.RoundTripper { return c.next }

// RoundTrip implements http.RoundTripper. Errors: ErrHeldByOther, ErrLeaseLost, ErrOver.
func (c *memberLeaseCarrier) RoundTrip(req *http.Request) (*http.Response, error) {
	if reads(req) {
		resp, err := c.next.RoundTrip(req)
		if errors.Is(err, ErrLeaseLost) { // the connection was for a turn that is over
			resp, err = c.next.RoundTrip(req)
		}
		return resp, err
	}
	if err := c.memberLease.Check(); err != nil {
		return refuse(req, err)
	}
	c.memberLease.mu.Lock()
	turn, open := c.memberLease.turn, c.memberLease.open
	c.memberLease.mu.Unlock()
	if open {
		return c.next.RoundTrip(req)
	}
	resp, err := (&memberCarrier{turn, c.next}).RoundTrip(req)
	if err != nil {
		return nil, leaseLost(err)
	}
	return resp, nil
}

// current returns the turn that is held for certain, now; nil if none is.
func (s *MemberLease) current() *Tenure {
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
func (s *MemberLease) Dial(dial DialFunc) DialFunc {
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		of := s.current()
		inner, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &memberLeaseConn{inner, s, of}, nil
	}
}

type memberLeaseConn struct {
	net.Conn
	memberLease *MemberLease
	of          *Tenure // nil: none
}

// Write implements io.Writer.
func (c *memberLeaseConn) Write(content []byte) (int, error) {
	if c.memberLease.current() != c.of {
		return 0, fmt.Errorf("send to %s: %w", c.RemoteAddr(), errors.Join(ErrLeaseLost, ErrOver, c.Close()))
	}
	return c.Conn.Write(content)
}
