package decider

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/estimate/profile"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/answers"
)

// Estimator counts what fits in a cluster, from its nodes: MaxInt32 is no bound, and
// an error means that nothing is known.
type Estimator interface {
	// MaxReplicas counts replicas that need as much, besides what is assumed.
	MaxReplicas(ctx context.Context, cluster string, need *workv1alpha2.ReplicaRequirements, assumed []estimate.Assumed) (int32, error)
	// MaxSets counts sets of the components.
	MaxSets(ctx context.Context, cluster, namespace string, components []workv1alpha2.Component, assumed []estimate.Assumed) (int32, error)
}

// ProfileEstimator is an Estimator that knows the profiles that clusters have published.
type ProfileEstimator interface {
	Estimator
	// Age is how old the profile of a cluster is that it has just answered about; zero: it is
	// current.
	Age(ctx context.Context, cluster string) time.Duration
}

// Estimators are asked before a decision for which capacity counts. The zero
// value asks nobody.
type Estimators struct {
	// Watched answers from memory, and is asked first; nil: nobody does.
	Watched Estimator
	// Profiled answers from memory, too, and is asked about the clusters that Watched knows
	// nothing of; nil: nobody is.
	Profiled ProfileEstimator
	// Remote is asked about the clusters that neither knows as they are now, all at the same
	// time; nil: nobody is. It leaves alone by itself those that do not answer.
	Remote Estimator
	// Timeout is how long Remote may take before what a cluster reported last counts; zero
	// means DefaultTimeout.
	Timeout time.Duration
}

// DefaultTimeout is how long to wait for an answer.
const DefaultTimeout = 50 * time.Millisecond

func (e *Estimators) any() bool { return e.Watched != nil || e.Profiled != nil || e.Remote != nil }

const (
	// memory is for how long the last report of a cluster counts. After that what it
	// reports is the better guess.
	memory = answers.MaxAge
	// mostRemembered is how many answers are kept.
	mostRemembered = 20_000
)

// estimates asks what fits in clusters, and remembers what they reported last. Use
// newEstimates; it is safe for use by several goroutines.
type estimates struct {
	Estimators
	clock clock.PassiveClock
	// assumed returns what was placed in a cluster and is not seen there yet.
	assumed func(cluster string) []estimate.Assumed

	mu   sync.Mutex
	last map[question]answer
}

// errNobody says that there is no estimator.
var errNobody = errors.New("no estimator")

// question is about one cluster and what one unit of a workload is.
type question struct{ cluster, unit string }

// answer is the answer to a question.
type answer struct {
	fits     int32
	by       estimate.Source
	at       time.Time
	reserved *estimate.Load // in the cluster at that time; nil: nothing
}

func newEstimates(of Estimators, c clock.PassiveClock, assumed func(string) []estimate.Assumed) *estimates {
	if of.Timeout == 0 {
		of.Timeout = DefaultTimeout
	}
	return &estimates{Estimators: of, clock: c, assumed: assumed, last: map[question]answer{}}
}

// of returns what fits in the clusters of the names: of those that did not answer what
// they reported last, with its age, and nothing of those that never did: unreported is what those
// of them leave out that do report their nodes.
func (e *estimates) of(ctx context.Context, b workv1alpha2.Binding, names []string, clusters placement.Snapshot) (out map[string]estimate.Answer, unreported map[string]string) {
	if len(names) == 0 {
		return nil, nil
	}
	spec, is := b.BindingSpec(), unitOf(b)
	out, unreported = make(map[string]estimate.Answer, len(names)), map[string]string{}
	var others []string
	old := map[string]estimate.Answer{}
	for _, name := range names {
		if n, err := ask(ctx, e.Watched, spec, is, name, e.assumed); err == nil && estimate.Plausible(n, 0) == nil {
			out[name] = estimate.Answer{Fits: n}
			continue
		}
		n, err := ask(ctx, e.Profiled, spec, is, name, e.assumed)
		if missing := (*profile.UnreportedError)(nil); errors.As(err, &missing) {
			unreported[name] = missing.What
		}
		if err == nil && estimate.Plausible(n, podsOf(clusters, name)) == nil {
			old[name] = estimate.Answer{Fits: n, Age: e.Profiled.Age(ctx, name), By: estimate.ByAgent}
		}
		if a, ok := old[name]; ok && a.Age == 0 {
			out[name] = a
			continue
		}
		others = append(others, name)
	}
	for name, n := range e.remote(ctx, spec, is, others, clusters) {
		out[name] = estimate.Answer{Fits: n, By: estimate.ByEstimator}
	}
	for _, name := range others {
		if _, answered := out[name]; !answered && old[name].Age > 0 {
			out[name] = old[name]
		}
	}
	e.recall(out, spec, is, names, clusters)
	for name := range out { // by another, or by before
		delete(unreported, name)
	}
	return out, unreported
}

// ask asks one estimator about one cluster; nobody knows nothing.
func ask(ctx context.Context, whom Estimator, spec *workv1alpha2.ResourceBindingSpec, is *unit, cluster string, assumed func(string) []estimate.Assumed) (int32, error) {
	if whom == nil {
		return 0, errNobody
	}
	if placement.InSets(spec) {
		return whom.MaxSets(ctx, cluster, is.namespace, spec.Components, assumed(cluster))
	}
	need := workv1alpha2.ReplicaRequirements{}
	if spec.ReplicaRequirements != nil {
		need = *spec.ReplicaRequirements
	}
	if need.Namespace == "" {
		need.Namespace = is.namespace // quotas are by namespace
	}
	return whom.MaxReplicas(ctx, cluster, &need, assumed(cluster))
}

// remote asks about all the clusters at the same time, and returns what came in time and
// can be true.
func (e *estimates) remote(ctx context.Context, spec *workv1alpha2.ResourceBindingSpec, is *unit, names []string, clusters placement.Snapshot) map[string]int32 {
	if e.Remote == nil || len(names) == 0 {
		return nil
	}
	type reply struct {
		cluster string
		fits    int32
		err     error
	}
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	replies := make(chan reply, len(names)) // a late answer blocks nobody
	for _, name := range names {
		go func() {
			n, err := ask(ctx, e.Remote, spec, is, name, e.assumed)
			replies <- reply{name, n, err}
		}()
	}
	out := make(map[string]int32, len(names))
	take := func(r reply) {
		if r.err == nil && estimate.Plausible(r.fits, podsOf(clusters, r.cluster)) == nil {
			out[r.cluster] = r.fits
		}
	}
	for n := len(names); n > 0; n-- {
		select {
		case r := <-replies:
			take(r)
		case <-ctx.Done():
			for range len(replies) { // answers that came in time although this goroutine was late
				take(<-replies)
			}
			n = 0
		}
	}
	return out
}

// recall adds to out what clusters that are not in it have reported last, and remembers what
// the others say.
func (e *estimates) recall(out map[string]estimate.Answer, spec *workv1alpha2.ResourceBindingSpec, is *unit, names []string, clusters placement.Snapshot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, need := e.clock.Now(), placement.NeedOf(spec)
	for _, name := range names {
		key, reserved := question{name, is.key}, clusters.Reserved(name)
		if a, answered := out[name]; answered {
			e.last[key] = answer{a.Fits, a.By, now.Add(-a.Age), reserved}
			continue
		}
		last, ever := e.last[key]
		switch age := now.Sub(last.at); {
		case !ever:
		case age >= memory:
			delete(e.last, key)
		default:
			out[name] = estimate.Answer{Fits: last.fits, By: last.by}.Since(max(age, 1), need, loadOf(reserved).Minus(loadOf(last.reserved)))
		}
	}
	if len(e.last) > mostRemembered {
		for key, last := range e.last {
			if now.Sub(last.at) >= memory/10 || len(e.last) > mostRemembered {
				delete(e.last, key)
			}
		}
	}
}

func loadOf(l *estimate.Load) estimate.Load {
	if l == nil {
		return estimate.Load{}
	}
	return *l
}

// podsOf returns how many pods a cluster has places for by what it reports; zero: that is
// not known.
func podsOf(clusters placement.Snapshot, name string) int64 {
	c, ok := clusters.Cluster(name)
	if !ok || c.Status.ResourceSummary == nil {
		return 0
	}
	pods := c.Status.ResourceSummary.Allocatable[corev1.ResourcePods]
	return pods.Value()
}
