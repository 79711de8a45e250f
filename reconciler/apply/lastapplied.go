package apply

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/apply/returns"
	"github.com/flotilla-io/flotilla/reconciler/apply/withdrawals"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/secrets"
)

// inputs are all that can ask for a revision to be applied anew, besides time.
type inputs struct {
	generation               int64
	revision, digest         string
	requestedAt, allowsPrune string
}

func (s *state) inputs() inputs {
	return inputs{
		generation:  s.ks.Generation,
		revision:    s.source.revision,
		digest:      s.source.digest,
		requestedAt: s.ks.Annotations[meta.ReconcileRequestAnnotation],
		allowsPrune: s.ks.Annotations[inventory.AllowPruneAnnotation],
	}
}

// lastApplied is what the loop keeps of a Kustomization between runs. All of it can
// be lost: it only saves work.
type lastApplied struct {
	mu sync.Mutex
	// known says that the fields below were filled in.
	known bool
	// missed says that something was deleted, or has changed, since the run began that did everything
	// anew last.
	missed bool
	// applied are the inputs whose objects all stand on the hub.
	applied inputs
	desired []inventory.Entry
	built
	turns
	// unhealthy is what the last complaint about health was about, in which revision, and its text.
	unhealthy struct {
		about    []inventory.ID
		in, text string
	}
	// given are objects that other Kustomizations have taken since a revision stood.
	given map[inventory.ID]bool
	// siblingsOf is the source whose other Kustomizations are waited for; empty for none.
	siblingsOf client.ObjectKey
	// waitsFor are the objects whose health is still being waited for.
	waitsFor map[inventory.ID]bool
	// did is what was done for the revision that is worked on.
	did applier.Deeds
	// defines is the artifact whose kinds and namespaces are waited for, since when.
	defines struct {
		digest string
		since  time.Time
	}
	// borrows says that others hold what is left as it is, and may give it up with any revision.
	borrows bool
	// secrets were put into the objects.
	secrets secrets.Values
	// account acted in the last run.
	account client.ObjectKey
}

// turns are when a Kustomization is worked on.
type turns struct {
	// due is when drift is looked for, and unkept why it could not be corrected while a revision is refused; nil if it could.
	due    time.Time
	unkept error
	// unkeptBy is the generation of the Kustomization by which it could not.
	unkeptBy int64
	// moved says that what stands is of another artifact than before, which is yet to be reported.
	moved bool
	// applies is what a run is about to apply; empty between runs.
	applies []inventory.Entry
	// returns say when what others delete comes back, after interval at most.
	returns  returns.Returns
	interval time.Duration
}

// takes notes who acts, and reports whether that is somebody else than before.
func (m *lastApplied) takes(account client.ObjectKey) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.account
	m.account = account
	return before != account
}

// lastAppliedStates hold one state per Kustomization.
type lastAppliedStates struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	byKey map[client.ObjectKey]*lastApplied
}

func newLastAppliedStates(clock clock.PassiveClock) *lastAppliedStates {
	return &lastAppliedStates{clock: clock, byKey: map[client.ObjectKey]*lastApplied{}}
}

func (m *lastAppliedStates) of(key client.ObjectKey) *lastApplied {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byKey[key] == nil {
		m.byKey[key] = &lastApplied{}
	}
	return m.byKey[key]
}

func (m *lastAppliedStates) forget(key client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byKey, key)
}

// WaitingFor implements wakes.States.
func (m *lastAppliedStates) WaitingFor(id inventory.ID) []client.ObjectKey {
	m.mu.Lock()
	defer m.mu.Unlock()
	var keys []client.ObjectKey
	for key, last := range m.byKey {
		if last.isWaitingFor(id) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (m *lastApplied) isWaitingFor(id inventory.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.waitsFor[id]
}

// Again implements wakes.States.
func (m *lastAppliedStates) Again(key client.ObjectKey) { m.of(key).again() }

// again has the next run work on everything anew.
func (m *lastApplied) again() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known, m.missed = false, true
}

// Misses implements wakes.States.
func (m *lastAppliedStates) Misses(key client.ObjectKey, id inventory.ID) (after time.Duration, misses bool) {
	m.mu.Lock()
	last := m.byKey[key]
	m.mu.Unlock()
	if last == nil {
		return 0, false
	}
	last.mu.Lock()
	defer last.mu.Unlock()
	is := func(e inventory.Entry) bool { return e.ID == id }
	if !slices.ContainsFunc(last.desired, is) && !slices.ContainsFunc(last.applies, is) {
		return 0, false
	}
	if after = last.returns.Deleted(id, m.clock.Now(), last.interval); returns.Long(after) {
		return 0, true // to say so, and no more
	}
	return after, true
}

// applying notes what a run is about to apply: of that, too, something may go.
func applying(m *lastApplied, objects []inventory.Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applies = objects
}

// missing has a revision that stands be not ready while something of it is not there, and comes back only later.
func missing(m *lastApplied, now time.Time) error {
	m.mu.Lock()
	text := m.returns.Missing()
	m.mu.Unlock()
	if text == "" {
		return nil
	}
	return loop.Waiting(inventory.ReasonDeletedAgain, max(m.dueAfter(now), minimumPause), errors.New(text))
}

// takes notes that an owner takes what others hold.
func (m *lastAppliedStates) takes(owner client.ObjectKey, changes []applier.Change) {
	for _, c := range changes {
		if c.Shares && !c.Takes || c.Owner == owner || c.Owner == (client.ObjectKey{}) {
			continue
		}
		owner := m.of(c.Owner)
		owner.mu.Lock()
		if owner.given == nil {
			owner.given = map[inventory.ID]bool{}
		}
		owner.given[inventory.IDOf(c.Desired)] = true
		owner.mu.Unlock()
	}
}

// gone returns the objects that others have taken, and those that a revision which was built leaves out, unless
// it is the brake that holds them: what of these is gone has gone for good.
func (m *lastApplied) gone(s *state, reason string) map[inventory.ID]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := maps.Clone(m.given)
	if len(s.objects) == 0 || reason == ReasonPruneBlocked || reason == withdrawals.ReasonUnknownCluster {
		return out
	}
	if out == nil {
		out = map[inventory.ID]bool{}
	}
	owned, _ := inventory.Read(s.ks.Status.Inventory) // what cannot be read is reported by whoever needs it
	wanted, _ := inventory.Of(s.objects)
	for _, e := range inventory.Compare(owned, wanted).Removed {
		out[e.ID] = true
	}
	return out
}

// waitsForSiblings notes whether other Kustomizations of a source are waited for.
func (m *lastApplied) waitsForSiblings(source client.ObjectKey, waits bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.siblingsOf = source; !waits {
		m.siblingsOf = client.ObjectKey{}
	}
}

// WaitingForSiblings implements wakes.States.
func (m *lastAppliedStates) WaitingForSiblings(source client.ObjectKey) []client.ObjectKey {
	m.mu.Lock()
	defer m.mu.Unlock()
	var keys []client.ObjectKey
	for key, last := range m.byKey {
		last.mu.Lock()
		if last.siblingsOf == source {
			keys = append(keys, key)
		}
		last.mu.Unlock()
	}
	return keys
}

// recall reports whether the objects of these inputs stand and are not due, and fills
// the state with what is known of them. After a restart the status says so: the
// first look for drift then comes somewhere within the interval.
func (m *lastApplied) recall(s *state) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.interval = intervals.Drift(s.ks)
	if m.returns.Take(s.now) {
		m.known, m.missed = false, true
	}
	if !m.known && !m.missed && kustomizations.Stands(s.ks, s.source.revision) {
		m.known, m.applied = true, s.inputs()
		m.due = s.now.Add(intervals.Within(s.owner, intervals.Drift(s.ks)))
		m.desired, _ = inventory.Read(s.ks.Status.Inventory) // what cannot be read is found out by the next full run
	}
	due := !s.now.Before(m.due)
	s.drift = due || m.missed || s.ks.Annotations[meta.ReconcileRequestAnnotation] != s.ks.Status.LastHandledReconcileAt
	if !m.known || m.applied != s.inputs() || due {
		m.missed = false
		return false
	}
	s.desired, s.built = m.desired, m.built
	s.sameContent, m.moved = m.moved, false
	return true
}

// standsAt returns the digest of the artifact whose objects stand, if all but the artifact is as it was and
// drift is not due. The revision of the commit may lift the brake: one that says so is looked at.
func (m *lastApplied) standsAt(s *state) (digest string, stands bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	as := s.inputs()
	as.revision, as.digest = m.applied.revision, m.applied.digest
	return m.applied.digest, m.known && !m.missed && !m.borrows && m.applied == as && s.now.Before(m.due) && s.source.allows == ""
}

// moves has what stands be of another artifact that holds the same; yields says that this is reported later. It returns
// false if something has been missed meanwhile.
func (m *lastApplied) moves(s *state, yields bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.known || m.missed {
		return false
	}
	m.applied, s.desired, s.built = s.inputs(), m.desired, m.built
	m.moved = yields
	return true
}

// awaitsDefinitions returns since when the kinds and namespaces of an artifact are waited for.
func (m *lastApplied) awaitsDefinitions(s *state) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.defines.digest != s.source.digest {
		m.defines.digest, m.defines.since = s.source.digest, s.now
	}
	return m.defines.since
}

// keeps has the next look for drift of the objects of the last good revision come after the interval, while
// another one is refused.
func (m *lastApplied) keeps(s *state, objects []inventory.Entry, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(objects) > 0 {
		m.desired = objects
	}
	m.due = now.Add(intervals.Jittered(s.owner, intervals.Drift(s.ks)))
}

// nextCheck has a run that went well, or stalled, come again when drift is to be looked for.
func (m *lastApplied) nextCheck(next loop.Next, err error, now time.Time) (loop.Next, error) {
	due := m.dueAfter(now)
	if outcome := loop.As(err, ""); outcome != nil && (outcome.Class != loop.ClassStalled || due <= 0) {
		return next, err
	}
	if due = max(due, minimumPause); next.After == 0 || due < next.After {
		next.After = due
	}
	return next, nil
}

// dueAfter returns how long it is until drift is to be looked for; it may be over.
func (m *lastApplied) dueAfter(now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if back := m.returns.Due(); !back.IsZero() && back.Before(m.due) {
		return back.Sub(now)
	}
	return m.due.Sub(now)
}

// complaint returns the text of the last complaint if it was about the same
// objects of the same revision and the text counts what moves by itself, else the new one.
func (m *lastApplied) complaint(revision string, about []inventory.ID, text string, moves bool) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !moves {
		m.unhealthy.about = nil
		return text
	}
	if m.unhealthy.in != revision || !slices.Equal(m.unhealthy.about, about) {
		m.unhealthy.about, m.unhealthy.in, m.unhealthy.text = about, revision, text
	}
	return m.unhealthy.text
}

// changes says what was done for the revision that is worked on, or that stands since the
// last run; empty for nothing.
func (m *lastApplied) changes() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.did.Changes.String()
}

// stands reports whether all of a revision is applied, healthy or not.
func stands(outcome *loop.Error) bool {
	return outcome == nil || outcome.Reason == meta.HealthCheckFailedReason || outcome.Reason == inventory.ReasonDeletedAgain
}

// conclude records the outcome of a run.
func (m *lastApplied) conclude(s *state, outcome *loop.Error, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applies = nil
	if s.source.revision != "" {
		m.did = m.did.Of(s.source.revision)
		if !s.current && (stands(outcome) || outcome.Reason == meta.ProgressingReason) {
			m.did.Changes.Add(s.plan.Changes, inventory.IDsOf(slices.Concat(s.switched.pruned, s.leaving.Deleted)))
		}
		m.did.Reported = outcome == nil && s.waiting.text == "" && !s.leaving.Waits() || putBack(s, outcome)
	}
	if outcome == nil {
		m.unhealthy.about, m.unhealthy.text = nil, ""
	}
	if !stands(outcome) {
		m.known, m.waitsFor = m.known && s.unchanged, nil
		return
	}
	m.waitsFor = nil
	if s.waiting.text != "" || outcome != nil || len(s.leaving.kept) > 0 {
		m.waitsFor = make(map[inventory.ID]bool, len(s.desired))
		for _, e := range s.awaited() {
			m.waitsFor[e.ID] = true
		}
	}
	if s.current {
		return
	}
	m.returns.Back(s.now)
	if s.leaving.Waits() { // it is to be looked at again, whatever else stands
		m.known, m.due = false, now.Add(intervals.Retry(s.ks))
		return
	}
	m.known, m.applied, m.given, m.moved = !m.missed, s.inputs(), nil, false
	m.desired, m.built = slices.Clone(s.desired), s.built
	m.due = now.Add(intervals.Jittered(s.owner, intervals.Drift(s.ks)))
}

// minimumPause keeps a loop whose time is up from running in a circle.
const minimumPause = 10 * time.Millisecond
