package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
)

// observation is what was last seen of a member.
type observation struct {
	outcome
	// version, kinds and partial are empty until a healthy member was read.
	version string
	kinds   []clusterv1alpha1.APIEnablement
	// partial says that some of the member's groups could not be read.
	partial bool
	// nodes and resources are nil until they are known.
	nodes     *clusterv1alpha1.NodeSummary
	resources *clusterv1alpha1.ResourceSummary
}

func (o *observation) same(other *observation) bool {
	return o.outcome == other.outcome && o.version == other.version && o.partial == other.partial &&
		equality.Semantic.DeepEqual(o.kinds, other.kinds) &&
		equality.Semantic.DeepEqual(o.nodes, other.nodes) &&
		equality.Semantic.DeepEqual(o.resources, other.resources)
}

const (
	// firstLook is how soon a member in trouble is looked at again, then twice
	// that, up to the period.
	firstLook = time.Second
	// kindsSettle and kindsAgain are how long after a change of its
	// CustomResourceDefinitions or APIServices a member's kinds are read: soon,
	// and again when its discovery has surely followed.
	kindsSettle = 300 * time.Millisecond
	kindsAgain  = 3 * time.Second
)

// observer watches one member from a goroutine of its own, so that a member that
// does not answer keeps nobody else waiting.
type observer struct {
	clock     clock.WithTicker
	options   Options
	threshold *threshold
	report    func(observation)

	probe    func(context.Context) outcome
	prove    func(context.Context) error
	suspects <-chan struct{}
	read     func(context.Context) (version string, kinds []clusterv1alpha1.APIEnablement, partial bool, err error)
	changed  func() // the kinds are not what they were
	follow   func(context.Context, *news)
	sums     func() (*clusterv1alpha1.NodeSummary, *clusterv1alpha1.ResourceSummary)

	seen    observation
	told    *observation  // what was last reported
	readAt  time.Time     // when version and kinds were read; zero: not since trust returned
	trouble time.Duration // how soon to look again; zero: there is none
}

// news is how the watches within a member say that something changed.
type news struct {
	kinds chan struct{} // CustomResourceDefinitions or APIServices
	first chan struct{} // closed when nodes and pods are known
}

// observer returns the observer of a member.
func (r *Reconciler) observer(member *members.Member, wasReady bool, report func(observation)) *observer {
	discovery := member.Clients().Discovery()
	summary := &summary{}
	return &observer{
		clock:     r.options.Clock,
		options:   r.options,
		threshold: newThreshold(r.options.FailureThreshold, r.options.SuccessThreshold, wasReady),
		report:    report,
		probe: func(ctx context.Context) outcome {
			is := probe(ctx, discovery.RESTClient())
			if is == unreachable {
				member.Doubt()
			}
			return is
		},
		prove:    member.Prove,
		suspects: member.Suspects(),
		read: func(context.Context) (string, []clusterv1alpha1.APIEnablement, bool, error) {
			return readKinds(discovery)
		},
		changed: member.KindsChanged,
		follow:  func(ctx context.Context, n *news) { followMember(ctx, member, summary, n) },
		sums:    summary.sums,
	}
}

// run watches until ctx ends.
func (o *observer) run(ctx context.Context) {
	n := &news{kinds: make(chan struct{}, 1), first: make(chan struct{})}
	var following sync.WaitGroup
	defer following.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	started := false
	for ctx.Err() == nil {
		healthy := o.look(ctx)
		if healthy && !started {
			started = true
			following.Go(func() { o.follow(ctx, n) })
			o.await(ctx, n.first, firstLook)
			o.sum()
		}
		o.tell()
		o.wait(ctx, n)
	}
}

// look asks the member how it is and, if it is well, who it is and what it
// serves. It says whether the member could be read.
func (o *observer) look(ctx context.Context) bool {
	probeCtx, cancel := context.WithTimeout(ctx, o.options.ProbeTimeout)
	defer cancel()
	select { // what is about to be looked at needs no reminder
	case <-o.suspects:
	default:
	}
	is := o.probe(probeCtx)
	var err error
	if is != unreachable {
		err = o.prove(probeCtx)
	}
	switch {
	case errors.Is(err, members.ErrOtherCluster):
		o.seen.outcome = outcome{reason: reasonIdentityMismatch, message: err.Error() + "; unjoin it and join the cluster that is there now"}
		o.trouble, o.readAt = o.options.Period, time.Time{}
		return false
	case err != nil:
		is = unreachable
	}
	o.seen.outcome = o.threshold.turn(o.clock.Now(), is)
	if !is.ready {
		o.trouble, o.readAt = min(max(2*o.trouble, firstLook), o.options.Period), time.Time{}
		return false
	}
	o.trouble = 0
	if o.readAt.IsZero() || o.clock.Since(o.readAt) >= o.options.Resync {
		o.readKinds(ctx)
	}
	o.sum()
	return true
}

// readKinds reads what the member serves. What cannot be read stays as it was.
func (o *observer) readKinds(ctx context.Context) {
	version, kinds, partial, err := o.read(ctx)
	if err != nil {
		return
	}
	if o.seen.kinds != nil && !equality.Semantic.DeepEqual(o.seen.kinds, kinds) {
		o.changed()
	}
	o.seen.version, o.seen.kinds, o.seen.partial = version, kinds, partial
	o.readAt = o.clock.Now()
}

func (o *observer) sum() {
	if nodes, resources := o.sums(); nodes != nil {
		o.seen.nodes, o.seen.resources = nodes, resources
	}
}

// tell reports what was seen, if it is news.
func (o *observer) tell() {
	if o.told != nil && o.told.same(&o.seen) {
		return
	}
	now := o.seen
	o.told = &now
	o.report(now)
}

// wait waits for the next look. Meanwhile it reads the member's kinds when they
// may have changed.
func (o *observer) wait(ctx context.Context, n *news) {
	next := o.options.Period
	if o.trouble > 0 {
		next = o.trouble
	}
	timer := o.clock.NewTimer(next)
	defer timer.Stop()
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.suspects:
			return
		case <-timer.C():
			return
		case <-n.kinds:
			o.await(ctx, nil, kindsSettle)
			o.readKinds(ctx)
			o.tell()
			again = o.clock.After(kindsAgain)
		case <-again:
			again = nil
			o.readKinds(ctx)
			o.tell()
		}
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
