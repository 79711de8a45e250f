package setback

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// Checker is the part of an agent: it compares the mark of its one member with the hub
// before any object of the hub is accepted. It writes nothing, neither to the hub nor
// to the member. Use NewChecker.
type Checker struct {
	options CheckerOptions

	mu       sync.Mutex
	history  hubclaim.History // of the hub, as last read
	met      bool             // the hub was compared, and is trusted
	hold     *hubclaim.Hold   // nil: nothing is held
	lost     *hubclaim.Mark   // the mark that shows that the hub is behind; nil: none does
	mark     *hubclaim.Mark   // the member's mark, as last read
	seen     int64            // the highest revision that concerned the member
	nobody   time.Time        // when the hub was last found without runs
	mute     bool             // the member's mark could not be read
	doubted  time.Time        // when the member was last marked by a run that was known already; zero: not since it was asked again
	opened   int64            // the revision at which the hub was opened; 0: not known
	kept     hubclaim.Copy    // the folder's record, as this run knows it
	reported []func()
}

// CheckerOptions name the two sides of a Checker. All but Opened, Folder and Clock are required.
type CheckerOptions struct {
	// Cluster is the member's name on the hub.
	Cluster string
	// Hub reads from the hub's server over the connection that is open before all others.
	Hub client.Reader
	// Asks reads from it over the loops' connection, and fails while the hub is away.
	Asks client.Reader
	// Member reads from the member.
	Member client.Reader
	// Opened returns at which revision the hub was opened, see Opened; nil, and 0: that is
	// not known.
	Opened func(context.Context) (int64, error)
	// Folder keeps the hub's objects on disk; nil: no loop starts without the hub.
	Folder Folder
	// Clock is the time; nil means the machine's.
	Clock clock.PassiveClock
}

// Folder keeps the hub's objects for a start without it, and the mark that they stand for.
type Folder interface {
	// Seen returns what See kept last; empty for nothing.
	Seen() (string, error)
	// See keeps a text.
	See(text string) error
	// Current reports whether all that the hub has sent in this run is kept.
	Current() bool
}

// NewChecker returns a Checker that has seen nothing.
func NewChecker(o CheckerOptions) *Checker {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Checker{options: o}
}

// OnChange adds a function to call when something begins to be held, when it ends, and
// when Meet may find that it has. It must not block, and is called before Meet.
func (s *Checker) OnChange(reported func()) { s.reported = append(s.reported, reported) }

// Hold returns why no object of the hub is accepted; nil if none is held back.
func (s *Checker) Hold() *hubclaim.Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hold
}

// Report is what the hub is to learn of the member's mark; false for nothing.
func (s *Checker) Report() (hubclaim.Report, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.lost != nil:
		return hubclaim.Report{Mark: *s.lost, Behind: true}, true
	case s.mark != nil:
		return hubclaim.Report{Mark: *s.mark}, true
	default:
		return hubclaim.Report{}, false
	}
}

// Saw records a revision that concerned the member.
func (s *Checker) Saw(_, resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = max(s.seen, number(resourceVersion))
}

// Meet compares a hub that answers with the member's mark, given the
// hub's namespace kube-system. Errors: hub.ErrHeld if the hub is behind or waits, or the
// member's mark cannot be read; other errors are the hub's. In either
// case no object of the hub may be accepted.
func (s *Checker) Meet(ctx context.Context, system metav1.Object) error {
	l := comparison{history: hubclaim.ParseHistory(system.GetAnnotations()[clusterv1alpha1.HistoryAnnotation])}
	s.mu.Lock()
	s.met, l.seen = false, s.seen
	s.mu.Unlock()
	var err error
	l.mark, err = s.markOf(ctx, system)
	s.mu.Lock()
	s.mute = err != nil
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if err := s.ask(ctx, &l); err != nil {
		return err
	}
	hold := s.meet(l)
	if hold == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", hub.ErrHeld, hold.Describe())
}

// comparison holds what is compared: the member's mark, and the hub's revision.
// The hub goes on while it is asked, so that the first was read before the second.
type comparison struct {
	mark *hubclaim.Mark // the member's
	seen int64          // the highest revision that concerned it

	history    hubclaim.History
	at, opened int64 // the revisions that the hub is at, and was opened at
}

// ask reads the hub's revision. Its history, which was read before the member's mark,
// is read again where it does not have the mark's run.
func (s *Checker) ask(ctx context.Context, l *comparison) (err error) {
	l.at, err = revision(ctx, s.options.Hub, &workv1alpha1.WorkList{}, client.InNamespace(workv1alpha2.ExecutionNamespace(s.options.Cluster)))
	if apierrors.IsForbidden(err) {
		l.at, err = math.MaxInt64, nil // it is not registered yet: only the hub's runs show it
	}
	if err != nil {
		return err
	}
	if s.options.Opened != nil {
		if l.opened, err = s.options.Opened(ctx); err != nil {
			return err
		}
	}
	if !l.history.Behind(l.mark, "", l.at) && !l.history.Outruns(l.mark, l.opened) {
		return nil
	}
	system := &corev1.Namespace{}
	if err := s.options.Hub.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return fmt.Errorf("read the history of the hub: %w", err)
	}
	l.history = hubclaim.ParseHistory(system.Annotations[clusterv1alpha1.HistoryAnnotation])
	return nil
}

// askMember is the timeout of reading the member's mark.
const askMember = 5 * time.Second

// markOf reads the member's mark, if it is of this hub.
func (s *Checker) markOf(ctx context.Context, of metav1.Object) (*hubclaim.Mark, error) {
	ctx, cancel := context.WithTimeout(ctx, askMember)
	defer cancel()
	system := &corev1.Namespace{}
	if err := s.options.Member.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return nil, fmt.Errorf("%w: read how far the member has seen the hub: %w", hub.ErrHeld, err)
	}
	claim, err := hubclaim.Parse(system.Annotations[clusterv1alpha1.ClaimAnnotation])
	if err != nil || claim == nil || claim.Hub != string(of.GetUID()) {
		return nil, nil //nolint:nilnil,nilerr // whose the member is, is found out elsewhere
	}
	return claim.Mark, nil
}

// meet concludes from a comparison whether something is held, and reports a change.
func (s *Checker) meet(l comparison) *hubclaim.Hold {
	s.mu.Lock()
	was, lost := s.hold, s.lost
	if l.opened > 0 && l.opened != s.opened && s.opened > 0 {
		l.at = min(l.at, l.opened) // what was seen before was of another run
	}
	s.opened = l.opened
	s.lost = s.evidence(l)
	switch {
	case s.lost != nil:
	case lost != nil:
		s.seen = 0 // what was lost is lost, however far the store is by now
	case s.seen == l.seen:
		s.seen = min(s.seen, l.at)
	}
	switch {
	case s.lost == nil:
		s.hold = l.history.Hold.Of(s.options.Cluster)
	case s.hold == nil || !s.hold.Covers(s.lost):
		found, _ := hubclaim.History{}.WithHold(s.options.Cluster, s.lost, l.at, s.options.Clock.Now())
		s.hold = found.Hold
	}
	s.history, s.mark, s.nobody = l.history, l.mark, time.Time{}
	is := s.hold
	s.met = is == nil
	s.mu.Unlock()
	if (was == nil) != (is == nil) {
		s.notify()
	}
	return is
}

// evidence returns a mark that shows that the hub is behind; nil if there is none.
// What was found once stands until a person decides to go on: the store grows meanwhile.
// The lock is held.
func (s *Checker) evidence(l comparison) *hubclaim.Mark {
	switch {
	case s.lost != nil && !l.history.Forgives(s.lost):
		return s.lost
	case l.history.Behind(l.mark, "", l.at), l.history.Outruns(l.mark, l.opened):
		return l.mark
	case s.mark == nil || l.seen <= l.at:
		return nil
	}
	if unmarked := (&hubclaim.Mark{Run: s.mark.Run, ID: s.mark.ID, Revision: l.seen}); !l.history.Forgives(unmarked) {
		return unmarked
	}
	return nil
}

var _ members.Marker = (*Checker)(nil)

// Weigh implements members.Marker. The hub was compared with the mark before
// any of its objects was accepted; the member itself goes on with what it has.
func (s *Checker) Weigh(_ context.Context, _ string, mark *hubclaim.Mark) error {
	s.mu.Lock()
	s.mark = mark
	spoke, behind := s.mute, s.met && s.kept.Older(mark)
	s.mute = false
	s.mu.Unlock()
	if behind { // the mark is of another program, or of before the disk was full
		s.keep(mark, mark)
	}
	if spoke {
		s.notify()
	}
	return nil
}

func (s *Checker) notify() {
	for _, changed := range s.reported {
		changed()
	}
}

// recheck is how long a hub is not asked again that has no run written down, or whose
// last run was known already.
const recheck = time.Minute

// soon is how long it is not asked again that has another run to write down.
const soon = 5 * time.Second

// Next implements members.Marker. The hub is asked which of its runs is the last once
// something has concerned the member: what that has seen by then is of this run, or
// of an earlier one, and never of a later one. A hub that has just begun may not have
// written its run down by then, so that it is asked once more where it named no new one.
func (s *Checker) Next(ctx context.Context, _ string, have *hubclaim.Mark) (*hubclaim.Mark, error) {
	next, err := s.next(ctx, have)
	if next != nil {
		s.keep(next, have)
	}
	return next, err
}

func (s *Checker) next(ctx context.Context, have *hubclaim.Mark) (*hubclaim.Mark, error) {
	s.mu.Lock()
	seen, forgiven := s.seen, s.history.Forgives(have)
	waits := !s.met || s.options.Clock.Since(s.nobody) < recheck
	doubts := have != nil && !s.doubted.IsZero() && s.options.Clock.Since(s.doubted) >= recheck
	s.mu.Unlock()
	if _, ok := hubclaim.Next(have, hubclaim.Run{}, seen, forgiven); waits || !ok && !doubts {
		return nil, nil
	}
	system := &corev1.Namespace{}
	if err := s.options.Asks.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return nil, fmt.Errorf("read the history of the hub: %w", err)
	}
	history := hubclaim.ParseHistory(system.Annotations[clusterv1alpha1.HistoryAnnotation])
	last, ok := history.Last()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !ok:
		s.nobody = s.options.Clock.Now()
		return nil, nil
	case history.Hold.Of(s.options.Cluster) != nil || !s.met:
		return nil, nil
	case s.opened > 0 && seen > s.opened && history.Since(s.opened) == "":
		s.nobody = s.options.Clock.Now().Add(soon - recheck) // the present run is about to be written down
		return nil, nil
	}
	known, _ := s.history.Last()
	s.history, s.doubted = history, time.Time{}
	next, ok := hubclaim.Next(have, last, seen, forgiven)
	switch {
	case ok && last.ID == known.ID:
		s.doubted = s.options.Clock.Now()
	case !ok && have != nil && !forgiven && last.Number > have.Run:
		next, ok = hubclaim.Mark{Run: last.Number, ID: last.ID, Revision: have.Revision}, true
	}
	if !ok {
		return nil, nil
	}
	s.mark = &next
	return &next, nil
}

// Register has the Checker follow what concerns the member by the watch that the loops
// of mgr have.
func (s *Checker) Register(mgr ctrl.Manager) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := followWorks(ctx, mgr.GetCache(), s.Saw, cache.BlockUntilSynced(false)); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}))
}
