package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/members/informer"
	"github.com/flotilla-io/flotilla/internal/tenure"
	"github.com/flotilla-io/flotilla/reconciler/cluster/capacity"
	"github.com/flotilla-io/flotilla/reconciler/sleepdetector"
)

// observation is the last state seen of a member.
type observation struct {
	outcome
	// began is when the member began to be so; zero: before the start, or now.
	began time.Time
	// version and kinds are empty until a healthy member was read.
	version string
	kinds   []clusterv1alpha1.APIEnablement
	// gap says what could not be read of the kinds; empty: nothing.
	gap string
	// unclaimed is why the member refuses the claim; empty: it does not.
	unclaimed string
	// refused is the place from which a copy of the hub has asked to act there; empty: none has.
	refused string
	// unread says which kinds of objects cannot be read there, and why; empty: none.
	unread string
	// Totals are none until nodes and pods are known.
	capacity.Totals
}

func (o *observation) same(other *observation) bool {
	return o.outcome == other.outcome && o.version == other.version && o.gap == other.gap && o.unclaimed == other.unclaimed && o.refused == other.refused && o.unread == other.unread &&
		equality.Semantic.DeepEqual(o.kinds, other.kinds) &&
		equality.Semantic.DeepEqual(o.Nodes, other.Nodes) &&
		equality.Semantic.DeepEqual(o.Resources, other.Resources) &&
		equality.Semantic.DeepEqual(o.Models, other.Models)
}

const (
	// firstRetry is how soon a member with an error is probed again, then twice
	// that, up to the period.
	firstRetry = time.Second
	// kindsDebounce and kindsAgain are how long after a change of its
	// CustomResourceDefinitions or APIServices a member's kinds are read: soon,
	// and again when its discovery has surely followed.
	kindsDebounce = 300 * time.Millisecond
	kindsAgain    = 3 * time.Second
	// kindsMissing is how soon kinds that could not be read are asked for again.
	kindsMissing = time.Minute
	// liveness is how often a member is asked, between probes, whether it lives, and for how long it may be silent then: a process that is
	// stopped, or a network that is cut, breaks no connection. Of more than a hundred members each is asked less often.
	liveness = time.Second
)

// subject is the part of a member's connection that an observer uses.
type subject struct {
	probe    func(context.Context) outcome
	alive    func(context.Context) bool // a probe that changes nothing
	fleet    func() int                 // how many members are looked after
	prove    func(context.Context) error
	trusted  func() bool // the member has proved its identity
	suspects <-chan struct{}
	read     func(context.Context) reading
	changed  func() // the member's kinds have changed
	follow   func(context.Context, *change)
	sums     func() capacity.Totals
	// unclaimed is why the member refuses the claim; empty: it does not.
	unclaimed func() string
	// refused is the place from which a copy of the hub has asked to act there; empty: none has.
	refused func() string
	// unread says which kinds of objects could not be read for a time; empty: none.
	unread func(least time.Duration) string
}

// observer watches one member from a goroutine of its own, so that a member that
// does not answer does not delay others.
type observer struct {
	clock     clock.WithTicker
	opts      Options
	threshold *threshold
	report    func(observation)
	awake     *sleepdetector.Watch
	woke      time.Time       // when the process last woke, as far as is known here
	waking    <-chan struct{} // closed when it next does

	subject

	running  sync.WaitGroup
	seen     observation
	reported *observation  // what was last reported
	asked    time.Time     // when it was asked what it has not answered; zero: it answers
	answers  time.Time     // since when the member answers; zero: it does not
	barred   string        // why nothing may be written to the member, as last logged; empty: it may be
	trouble  time.Duration // how soon to look again; zero: there is none
	reading  kindsReading
}

// kindsReading is how far an observer is with the kinds of its member.
type kindsReading struct {
	before []clusterv1alpha1.APIEnablement // what the hub knows
	due    time.Time                       // when to read them again; zero: now
	done   chan reading                    // nil: no read is in flight
	failed time.Time                       // since when they cannot be read; zero: they can
	hinted time.Time                       // when they were last read for a hint
	again  <-chan time.Time                // when to read them once more after a hint
}

// change passes on from the watches of a member that something changed.
type change struct {
	kinds chan struct{} // CustomResourceDefinitions or APIServices
	first chan struct{} // closed when nodes and pods are known
}

// observer returns the observer of a member.
func (r *Reconciler) observer(member *members.Member, seen *observed, was *clusterv1alpha1.Cluster, report func(observation)) *observer {
	return &observer{
		clock:     r.opts.Clock,
		opts:      r.opts,
		threshold: newThreshold(r.opts.FailureThreshold, r.opts.SuccessThreshold, meta.IsStatusConditionTrue(was.Status.Conditions, clusterv1alpha1.ClusterConditionReady), r.opts.Clock.Now()),
		reading:   kindsReading{before: was.Status.APIEnablements},
		report:    report,
		awake:     r.heartbeats.awake,
		subject:   subjectOf(member, seen, r.registry.Len),
	}
}

// subjectOf returns the subject of a connected member.
func subjectOf(member *members.Member, seen *observed, fleet func() int) subject {
	discovery := member.Clients().Discovery()
	return subject{
		probe: func(ctx context.Context) outcome {
			is := probe(ctx, discovery.RESTClient())
			if is.away() {
				member.Doubt()
			}
			return is
		},
		alive:    func(ctx context.Context) bool { return probe(ctx, discovery.RESTClient()).ready },
		fleet:    fleet,
		prove:    member.Prove,
		trusted:  member.Proven,
		suspects: member.Suspects(),
		read: func(ctx context.Context) reading {
			client, err := discoveryOf(ctx, member)
			if err != nil {
				return reading{err: err}
			}
			return readKinds(client)
		},
		changed: member.KindsChanged,
		follow:  func(ctx context.Context, n *change) { followMember(ctx, member, seen, n) },
		sums:    seen.sums.Totals,

		unclaimed: member.Unclaimed,
		refused:   member.Refused,
		unread:    func(least time.Duration) string { return unreadText(members.Blind(member, least)) },
	}
}

// mostUnread is how many kinds a condition names.
const mostUnread = 5

// unreadText names the kinds that cannot be read in a member; empty for none.
func unreadText(kinds []informer.Blind) string {
	if len(kinds) == 0 {
		return ""
	}
	var parts []string
	for _, k := range kinds[:min(len(kinds), mostUnread)] {
		parts = append(parts, k.Kind.GroupKind().String()+": "+k.Why)
	}
	text := "some of its objects cannot be read, so that what is shown of them may be out of date: " + strings.Join(parts, "; ")
	if more := len(kinds) - mostUnread; more > 0 {
		text += fmt.Sprintf("; and %d more kinds", more)
	}
	return text
}

// run watches until ctx ends.
func (o *observer) run(ctx context.Context) {
	n := &change{kinds: make(chan struct{}, 1), first: make(chan struct{})}
	defer o.running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	started := false
	for ctx.Err() == nil {
		healthy := o.observe(ctx)
		if healthy && !started {
			started = true
			o.running.Go(func() { o.follow(ctx, n) })
			o.await(ctx, n.first, firstRetry)
			o.sum()
		}
		o.notify()
		o.wait(ctx, n)
	}
}

// wake starts over if the process has slept: what was seen before it did may be over.
func (o *observer) wake() {
	woke, next := o.awake.Since()
	if woke.After(o.woke) {
		o.threshold.restart(o.clock.Now())
	}
	o.woke, o.waking = woke, next
}

// bar reports once that nothing may be written to the member, and why: an agent whose hub
// is away has nobody else to report to.
func (o *observer) bar(ctx context.Context, err error) {
	text := ""
	if members.Barred(err) {
		text = err.Error()
	}
	if text != "" && text != o.barred {
		log.FromContext(ctx).Info("Nothing is written to the cluster", "reason", text)
	}
	o.barred = text
}

// observe probes the member and, if it is healthy, reads its identity and what it
// serves. It reports whether the member could be read.
func (o *observer) observe(ctx context.Context) bool {
	o.wake()
	asked := o.clock.Now()
	if !o.asked.IsZero() {
		asked, o.asked = o.asked, time.Time{}
	}
	probeCtx, cancel := context.WithTimeout(ctx, o.timeout())
	defer cancel()
	select { // the coming probe makes this request superfluous
	case <-o.suspects:
	default:
	}
	o.seen.began = time.Time{}
	is := o.probe(probeCtx)
	if !o.trusted() {
		o.reading.due = time.Time{} // it was away, and may have come back as another version
	}
	var err error
	if !is.away() {
		err = o.prove(probeCtx)
		o.bar(ctx, err)
	}
	// In each of these somebody else may act in the member, or it is another one: it counts as not ready at once, without the
	// threshold, and its kinds are read anew when it is back.
	switch {
	case errors.Is(err, members.ErrOtherCluster):
		o.seen.outcome = outcome{reason: clusterv1alpha1.ClusterIdentityMismatchReason, message: err.Error() + "; unjoin it and join the cluster that is there now"}
		o.trouble, o.reading.due = o.opts.Period, time.Time{}
		return false
	case errors.Is(err, members.ErrClaimed):
		o.seen.outcome = claimed(err)
		o.trouble, o.reading.due = o.opts.Period, time.Time{}
		return false
	case errors.Is(err, members.ErrAgent), errors.Is(err, members.ErrPushed):
		o.seen.outcome = outcome{reason: clusterv1alpha1.ClusterClaimedReason, message: err.Error()}
		o.trouble, o.reading.due = min(max(2*o.trouble, firstRetry), o.opts.Period), time.Time{}
		return false
	case errors.Is(err, members.ErrElsewhere):
		o.seen.outcome = outcome{reason: clusterv1alpha1.ClusterElsewhereReason, message: err.Error() + "; nothing is written there from here: stop one of the two. It is asked again every 5 minutes, and when this one starts"}
		o.trouble, o.reading.due = o.opts.Period, time.Time{}
		return false
	case errors.Is(err, members.ErrMoving), errors.Is(err, members.ErrLetGo), errors.Is(err, members.ErrLeft), errors.Is(err, members.ErrContested):
		o.seen.outcome = outcome{reason: clusterv1alpha1.ClusterElsewhereReason, message: err.Error()}
		if errors.Is(err, members.ErrMoving) {
			o.seen.outcome.reason = clusterv1alpha1.ClusterMovingReason
		}
		o.trouble, o.reading.due = min(max(2*o.trouble, firstRetry), o.opts.Period), time.Time{}
		return false
	case errors.Is(err, tenure.ErrLeaseLost): // that is the agent's, and says nothing about the member
		o.trouble, o.reading.due = firstRetry, time.Time{}
		return false
	case errors.Is(err, tenure.ErrOver):
		is = unwritable(err)
	case err != nil && (!o.trusted() || unidentified(err) != unknown):
		is = unidentified(err)
	}
	o.seen.unclaimed, o.seen.refused, o.seen.unread = o.unclaimed(), o.refused(), o.unreadable(is.ready)
	o.seen.outcome = o.threshold.turn(asked, o.clock.Now(), is)
	o.seen.began = o.threshold.began
	if !is.ready {
		o.trouble, o.reading.due = min(max(2*o.trouble, firstRetry), o.opts.Period), time.Time{}
		return false
	}
	o.trouble = 0
	if !o.clock.Now().Before(o.reading.due) {
		o.readKinds(ctx, o.opts.ProbeTimeout)
	}
	o.sum()
	return true
}

// unreadable says which kinds of objects cannot be read. A member that is away, or has come back and is given as long as any to have
// its objects read, has the same said of it as before, at most.
func (o *observer) unreadable(answers bool) string {
	if !answers {
		o.answers = time.Time{}
		return o.seen.unread
	}
	now := o.clock.Now()
	if o.answers.IsZero() {
		o.answers = now
	}
	least := max(o.opts.FailureThreshold, leastUnread)
	text := o.unread(least)
	if text != "" && now.Sub(o.answers) < least {
		return o.seen.unread
	}
	return text
}

// leastUnread is for how long a kind of objects cannot be read, whatever the threshold for the cluster, until that is reported: one that has just
// started takes seconds to list them, and is asked again with pauses.
const leastUnread = 15 * time.Second

// readKinds has read what the member serves, and waits for it for a while: a
// member that is slow to answer is probed meanwhile.
func (o *observer) readKinds(ctx context.Context, most time.Duration) {
	if o.reading.done == nil {
		done := make(chan reading, 1)
		o.reading.done = done
		o.running.Go(func() { done <- o.read(ctx) })
	}
	timer := o.clock.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case r := <-o.reading.done:
		o.learn(r)
	case <-timer.C():
	}
}

// learn adopts what was read. What could not be read stays as it was, which
// is reported if it was never read, or not for a while.
func (o *observer) learn(r reading) {
	now := o.clock.Now()
	o.reading.done, o.reading.due = nil, now.Add(o.opts.Resync)
	if r.err == nil && len(r.missing) == 0 {
		o.reading.failed = time.Time{}
	} else if o.reading.failed.IsZero() {
		o.reading.failed = now
	}
	lasting := now.Sub(o.reading.failed) >= o.opts.FailureThreshold
	if r.err != nil {
		if o.seen.version == "" || lasting {
			o.seen.gap = r.gap()
		}
		o.reading.due = time.Time{} // with the next probe
		return
	}
	before := o.seen.kinds
	if before == nil {
		before = o.reading.before
	}
	kinds, kept := r.keep(before)
	if o.seen.kinds != nil && !equality.Semantic.DeepEqual(o.seen.kinds, kinds) {
		o.changed()
	}
	o.seen.version, o.seen.kinds = r.version, kinds
	switch {
	case len(r.missing) == 0:
		o.seen.gap = ""
	case !kept || lasting:
		o.seen.gap = r.gap()
		o.reading.due = now.Add(min(kindsMissing, o.opts.Resync))
	default: // nothing of what was there is missing so far
		o.reading.due = now.Add(o.opts.FailureThreshold)
	}
}

func (o *observer) sum() {
	if sums := o.sums(); sums.Nodes != nil {
		o.seen.Totals = sums
	}
}

// notify reports what was seen, if it is new.
func (o *observer) notify() {
	if o.reported != nil && o.reported.same(&o.seen) || o.seen.outcome == (outcome{}) { // or nothing is known yet
		return
	}
	now := o.seen
	o.reported = &now
	o.report(now)
}

// wait waits for the next probe. Meanwhile it reads the member's kinds when they
// may have changed.
func (o *observer) wait(ctx context.Context, n *change) {
	next := o.opts.Period
	if o.trouble > 0 {
		next = o.trouble
	}
	if left := o.threshold.due().Sub(o.clock.Now()); left > liveness { // a probe that is not answered ends when it is due
		next = min(next, left-liveness)
	} else if left > 0 {
		next = min(next, left)
	}
	end := o.clock.Now().Add(next)
	timer := o.clock.NewTimer(o.pause(next))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.suspects:
			return
		case <-o.waking:
			return
		case <-timer.C():
			if left := end.Sub(o.clock.Now()); left <= 0 || !o.lives(ctx) {
				return
			}
			timer.Reset(o.pause(end.Sub(o.clock.Now())))
		case r := <-o.reading.done:
			o.learn(r)
			o.notify()
		case <-n.kinds:
			o.hint(ctx)
		case <-o.reading.again:
			o.reading.again = nil
			o.readKinds(ctx, o.opts.ProbeTimeout)
			o.notify()
		}
	}
}

// timeout is how long a probe may take: of a member that is about to count as away no longer than until then.
func (o *observer) timeout() time.Duration {
	if left := o.threshold.due().Sub(o.clock.Now()); o.threshold.shown.ready && !o.threshold.since.IsZero() {
		return min(max(left, liveness), o.opts.ProbeTimeout)
	}
	return o.opts.ProbeTimeout
}

// pause is how long to wait, of what is left until the next probe: a member that is well is asked before that whether it lives.
func (o *observer) pause(left time.Duration) time.Duration {
	if o.trouble > 0 {
		return left
	}
	return min(left, max(liveness, time.Duration(o.fleet())*liveness/100))
}

// lives reports whether a member that was well says at once that it is. If it does not, it has to be probed.
func (o *observer) lives(ctx context.Context) bool {
	asked := o.clock.Now()
	ctx, cancel := context.WithTimeout(ctx, liveness)
	defer cancel()
	if o.alive(ctx) {
		return true
	}
	o.asked = asked
	return false
}

// hint reads the kinds soon after something showed that they changed, and once
// more when discovery has surely followed. However often that is reported, they are
// read as often as that.
func (o *observer) hint(ctx context.Context) {
	if o.clock.Since(o.reading.hinted) >= kindsAgain {
		o.await(ctx, nil, kindsDebounce)
		o.reading.hinted = o.clock.Now()
		o.readKinds(ctx, o.opts.ProbeTimeout)
		o.notify()
	}
	if o.reading.again == nil {
		o.reading.again = o.clock.After(kindsAgain)
	}
}

// await waits for done, but not for longer than the given time.
func (o *observer) await(ctx context.Context, done <-chan struct{}, most time.Duration) {
	timer := o.clock.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-done:
	case <-timer.C():
	}
}
