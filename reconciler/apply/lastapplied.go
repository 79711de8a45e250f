package apply

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/apply/notices"
	"github.com/flotilla-io/flotilla/reconciler/apply/recreatebackoff"
	"github.com/flotilla-io/flotilla/reconciler/apply/riskyedits"
	"github.com/flotilla-io/flotilla/reconciler/apply/waitlist"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/secrets"
)

// inputs are what, besides time, makes a run apply a revision again when it changes.
type inputs struct {
	generation               int64
	revision, digest         string
	requestedAt, allowsPrune string
	strictVariables          string
}

func (s *state) inputs() inputs {
	return inputs{
		generation:  s.ks.Generation,
		revision:    s.source.revision,
		digest:      s.source.digest,
		requestedAt: s.ks.Annotations[meta.ReconcileRequestAnnotation],
		allowsPrune: s.ks.Annotations[inventory.AllowPruneAnnotation],

		strictVariables: s.ks.Annotations[builder.StrictVariablesAnnotation],
	}
}

// lastApplied is what the loop keeps of a Kustomization between runs. All of it can
// be lost: it only saves work.
type lastApplied struct {
	mu sync.Mutex
	// known says that the fields below were filled in.
	known bool
	// missed says that something was deleted or changed after the last full run began, which may not have seen it.
	missed bool
	// applied are the inputs of the last run that applied everything.
	applied inputs
	desired []inventory.Entry
	built
	schedule
	unhealthy health.Complaint
	// given are objects that other Kustomizations have taken over since the last full run.
	given map[inventory.ID]bool
	// awaited is what the Kustomization waits for.
	awaited waitlist.List
	// did is what was done so far for the latest revision.
	did applier.RevisionChanges
	// defines says for which artifact's kinds and namespaces the runs wait, and since when.
	defines struct {
		digest string
		since  time.Time
	}
	// borrows says that the revision leaves an object as it is which another Kustomization owns, and may give up
	// with any revision: each one has to be looked at.
	borrows bool
	// secrets are the values of Secrets in the objects, to be redacted from messages.
	secrets secrets.Values
	// account is the service account that the last run acted as.
	account client.ObjectKey
}

// schedule is what decides when a Kustomization is reconciled next.
type schedule struct {
	// due is when drift is checked for next. unkept is why drift from the last good revision could not be corrected,
	// while a newer one is refused; nil if it could.
	due    time.Time
	unkept error
	// unkeptBy is the generation of the Kustomization at which unkept was found, and desiredBy one of which the spec is known to ask for
	// the objects that are applied.
	unkeptBy, desiredBy int64
	// moved says that the applied objects count as those of a newer artifact, which the status does not report yet.
	moved bool
	// elsewhere says that its objects are in the cluster of spec.kubeConfig: what others delete here is none of them.
	elsewhere bool
	// doubts says that a cluster was lost or is back since the health was found out.
	doubts bool
	// applies is what a run is about to apply; empty between runs.
	applies []inventory.Entry
	// returns say when objects that others delete are applied again. That takes interval at most.
	returns  recreatebackoff.Returns
	interval time.Duration
}

// setAccount records the account that acts, and reports whether it is another one than before.
func (m *lastApplied) setAccount(account client.ObjectKey) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.account
	m.account = account
	return before != account
}

// lastAppliedStates holds the lastApplied of each Kustomization.
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

// WaitingFor implements watches.States.
func (m *lastAppliedStates) WaitingFor(id inventory.ID) []client.ObjectKey {
	return m.thatWait(func(l *waitlist.List) bool { return l.HasObject(id) })
}

// WaitingForSiblings implements watches.States.
func (m *lastAppliedStates) WaitingForSiblings(source inventory.Source) []client.ObjectKey {
	return m.thatWait(func(l *waitlist.List) bool { return l.HasSource(source) })
}

func (m *lastAppliedStates) thatWait(is func(*waitlist.List) bool) []client.ObjectKey {
	m.mu.Lock()
	defer m.mu.Unlock()
	var keys []client.ObjectKey
	for key, last := range m.byKey {
		if is(&last.awaited) {
			keys = append(keys, key)
		}
	}
	return keys
}

// ForceFullRun implements watches.States.
func (m *lastAppliedStates) ForceFullRun(key client.ObjectKey) { m.of(key).forceFullRun() }

// Doubt implements watches.States.
func (m *lastAppliedStates) Doubt(key client.ObjectKey) { doubt(m.of(key), true) }

// doubt sets whether the next run finds out the health of what is ready, and returns what was set.
func doubt(m *lastApplied, is bool) (was bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was, m.doubts = m.doubts, is
	return was
}

// forceFullRun makes the next run a full one.
func (m *lastApplied) forceFullRun() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known, m.missed = false, true
}

// RecreateAfter implements watches.States.
func (m *lastAppliedStates) RecreateAfter(key client.ObjectKey, id inventory.ID) (after time.Duration, misses bool) {
	m.mu.Lock()
	last := m.byKey[key]
	m.mu.Unlock()
	if last == nil {
		return 0, false
	}
	last.mu.Lock()
	defer last.mu.Unlock()
	if last.elsewhere {
		return 0, false
	}
	is := func(e inventory.Entry) bool { return e.ID == id }
	if !slices.ContainsFunc(last.desired, is) && !slices.ContainsFunc(last.applies, is) {
		return 0, false
	}
	if after = last.returns.Deleted(id, m.clock.Now(), last.interval); recreatebackoff.Long(after) {
		return 0, true // run now, to report it; the object is applied again only later
	}
	return after, true
}

// setApplying records what a run is about to apply, so that RecreateAfter notices what others delete of it meanwhile.
func setApplying(m *lastApplied, objects []inventory.Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applies = objects
}

// missingError returns an error, for the condition Ready, while an object of the applied revision is missing.
func missingError(m *lastApplied, now time.Time) error {
	m.mu.Lock()
	text := m.returns.Missing()
	m.mu.Unlock()
	if text == "" {
		return nil
	}
	return loop.Waiting(inventory.ReasonDeletedAgain, max(m.dueAfter(now), minimumPause), errors.New(text))
}

// recordTakeovers records, with the Kustomizations that own objects until now, that the owner's changes take these over.
func (m *lastAppliedStates) recordTakeovers(owner client.ObjectKey, changes []applier.Change) {
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

// notRecreated returns the objects that must not be created again while a revision is refused: those that others have taken
// over, and those that the revision, once built, does not hold any more. The latter stay in if it was refused because
// of a deletion that people have to allow.
func (m *lastApplied) notRecreated(s *state, reason string) map[inventory.ID]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := maps.Clone(m.given)
	if len(s.objects) == 0 || reason == inventory.ReasonPruneBlocked || reason == riskyedits.ReasonUnknownCluster {
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

// load reports whether the objects of these inputs are applied already and no check for drift is
// due, and then fills the state with what is known of them. After a restart it relies on the status for that.
// The first check for drift is then spread over the interval, so that a restart does not check all at once.
func (m *lastApplied) load(s *state) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.interval, m.elsewhere = intervals.Drift(s.ks), s.ks.Spec.KubeConfig != nil
	if m.returns.Take(s.now) {
		m.known, m.missed = false, true
	}
	if !m.known && !m.missed && kustomizations.IsApplied(s.ks, s.source.revision) {
		m.known, m.applied = true, s.inputs()
		m.due = s.now.Add(intervals.Within(s.owner, intervals.Drift(s.ks)))
		m.desired, _ = inventory.Read(s.ks.Status.Inventory) // what cannot be read is found out by the next full run
	}
	due := !s.now.Before(m.due)
	s.again = m.known && m.applied.generation == s.ks.Generation && m.applied.revision == s.source.revision && m.applied.digest == s.source.digest
	s.drift = due || m.missed || s.ks.Annotations[meta.ReconcileRequestAnnotation] != s.ks.Status.LastHandledReconcileAt
	if !m.known || m.applied != s.inputs() || due {
		m.missed = false
		return false
	}
	s.desired, s.built = m.desired, m.built
	s.sameContent, m.moved = m.moved, false
	return true
}

// unchangedSince returns the digest of the artifact whose objects are applied. stands reports whether all inputs but the
// artifact are unchanged and no check for drift is due. A commit that allows deletions is always a reason for a full
// run.
func (m *lastApplied) unchangedSince(s *state) (digest string, stands bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	as := s.inputs()
	as.revision, as.digest = m.applied.revision, m.applied.digest
	return m.applied.digest, m.known && !m.missed && !m.borrows && m.applied == as && s.now.Before(m.due) && s.source.allows == ""
}

// adopt records that the applied objects are those of the run's artifact, too, as it holds the same. yields says that a
// later run reports this. It returns false if a full run has become necessary meanwhile.
func (m *lastApplied) adopt(s *state, yields bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.known || m.missed {
		return false
	}
	m.applied, s.desired, s.built = s.inputs(), m.desired, m.built
	m.moved = yields
	return true
}

// awaitsDefinitions returns since when runs wait for the kinds and namespaces of the artifact.
func (m *lastApplied) awaitsDefinitions(s *state) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.defines.digest != s.source.digest {
		m.defines.digest, m.defines.since = s.source.digest, s.now
	}
	return m.defines.since
}

// scheduleDriftCheck sets the next check for drift from the last good revision to one interval from now, while another
// revision is refused.
func (m *lastApplied) scheduleDriftCheck(s *state, objects []inventory.Entry, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(objects) > 0 {
		m.desired, m.desiredBy = objects, s.ks.Generation
	}
	m.due = now.Add(intervals.Jittered(s.owner, intervals.Drift(s.ks)))
}

// nextCheck makes a run that succeeded or stalled be followed by one at the time of the next check for drift. A stalled
// one that was due as it started, and checked nothing, would only do so again.
func (m *lastApplied) nextCheck(next loop.Next, err error, started, now time.Time) (loop.Next, error) {
	if outcome := loop.As(err, ""); outcome != nil && (outcome.Class != loop.ClassStalled || m.dueAfter(started) <= 0) {
		return next, err
	}
	if due := max(m.dueAfter(now), minimumPause); next.After == 0 || due < next.After {
		next.After = due
	}
	return next, nil
}

// dueAfter returns how long it is until the next check for drift; negative if that is overdue.
func (m *lastApplied) dueAfter(now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if back := m.returns.Due(); !back.IsZero() && back.Before(m.due) {
		return back.Sub(now)
	}
	return m.due.Sub(now)
}

// eventsOf returns the events of a run.
func eventsOf(s *state, after *kustomizev1.Kustomization, outcome *loop.Error) []notices.Notice {
	m := s.last
	m.mu.Lock()
	defer m.mu.Unlock()
	return notices.Of(notices.Run{
		Before: s.ks, After: after, Outcome: outcome,
		Revision: s.source.revision, Included: s.source.included,
		Changes: m.did.Changes.String(), Omitted: m.did.Omits(s.omitted.String(), s.ks.Status.LastAppliedRevision == s.source.revision),
		DriftCorrected: s.driftCorrected, OwedDeleted: s.owed.deleted, Repeated: m.returns.Message,
		Anew: m.did.Anew, SameContent: s.sameContent, Undecided: len(s.stale.Undecided) > 0,
	})
}

// complaint returns health.Complaint.Text.
func (m *lastApplied) complaint(revision string, about []inventory.ID, text string, moves bool) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unhealthy.Text(revision, about, text, moves)
}

// record records the outcome of a run.
func (m *lastApplied) record(s *state, outcome *loop.Error, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applies = nil
	if s.source.revision != "" {
		m.did = m.did.Of(s.source.revision)
		m.did.Anew = m.did.Anew || lastgood.Anew(s.ks.Status, s.source.revision, s.source.digest)
		if !s.current && (kustomizations.Applied(outcome) || outcome.Reason == meta.ProgressingReason) {
			m.did.Changes.Add(s.plan.Changes, inventory.IDsOf(slices.Concat(s.switchover.pruned, s.stale.Deleted)))
		}
		m.did.Reported = outcome == nil && s.waiting.text == "" && !s.stale.Waits() || notices.CorrectsDrift(s.ks, s.source.revision, outcome, m.did.Anew)
	}
	if outcome == nil {
		m.unhealthy = health.Complaint{}
	}
	if !kustomizations.Applied(outcome) {
		if m.known = m.known && s.unchanged; !s.switchover.waits {
			m.awaited.SetObjects(s.owed.awaits)
		}
		return
	}
	m.awaited.SetObjects(inventory.IDsOf(s.awaited(outcome != nil)))
	if s.current {
		return
	}
	m.returns.Back(s.now)
	if s.stale.Waits() { // only a full run can delete what siblings have not taken over in the end
		m.known, m.due = false, now.Add(intervals.Retry(s.ks))
		return
	}
	m.known, m.applied, m.given, m.moved = !m.missed, s.inputs(), nil, false
	m.desired, m.desiredBy, m.built = slices.Clone(s.desired), s.ks.Generation, s.built
	m.due = now.Add(intervals.Jittered(s.owner, intervals.Drift(s.ks)))
}

// minimumPause is the shortest pause before a run that is already due. It keeps the loop from spinning.
const minimumPause = 10 * time.Millisecond
