package placement

import (
	"errors"
	"fmt"
	"math"
	"slices"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
	"github.com/flotilla-io/flotilla/policies/placement/room"
	"github.com/flotilla-io/flotilla/policies/placement/spread"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Options of a placement. The zero value is the default.
type Options struct {
	// SchedulerName is whose bindings Decide looks at; empty means the default.
	SchedulerName string
	// Plugins in the order in which they are asked; nil means all built-in ones.
	Plugins []framework.Plugin
	// KeepEmpty keeps chosen clusters that got no replicas.
	KeepEmpty bool
	// NoModels estimates capacity from the sums of a cluster alone, although it counts
	// its nodes by size.
	NoModels bool
	// NoComponents gives workloads with several components to clusters without
	// saying how many replicas of each they run.
	NoComponents bool
	// LeastCapacity counts the least of what a cluster reports and what was answered about it;
	// otherwise what was answered overrules what it reports.
	LeastCapacity bool
	// Failover says what moves a template off clusters.
	Failover failover.Rules
}

// Request asks for a placement.
type Request struct {
	// Spec of the binding, with its placement and where it runs today.
	Spec *workv1alpha2.ResourceBindingSpec
	// Peers are the bindings that this one wants to be with or apart from.
	Peers framework.Peers
	// ObservedAffinity is the affinity term that the last placement used; terms
	// before it are not tried again.
	ObservedAffinity string
	// Fresh forgets where replicas run and which term was used.
	Fresh bool
	// Barred are the clusters that the template is to be moved off, or not to be moved to.
	Barred failover.Due
	// Full are the clusters that may keep what they have, and get no more.
	Full []string
	// Estimates is what was answered about clusters that were asked what fits there, by name.
	Estimates map[string]estimate.Answer
	// Returns are clusters that it may be moved back to, although an eviction task is about them.
	Returns map[string]bool
	// Home are clusters that it is brought back to: preferred to where it runs.
	Home []string
	// WithinRoom means that no cluster gets more than it has room for, also where the placement does not divide by room.
	WithinRoom bool
}

// Result is a placement.
type Result struct {
	// Clusters, sorted by name. Resources without replicas have zero of them.
	Clusters []workv1alpha2.TargetCluster
	// AffinityName is the term that was used; empty where there are no terms.
	AffinityName string
}

// Place decides where the binding runs.
//
// Errors: *FitError where no cluster fits, whatever the term; *UnschedulableError
// where those that fit lack capacity; anything else means that the placement asks for
// what cannot be. Of several terms it is the first for which clusters fit that says
// what is wrong.
func Place(req Request, snap Snapshot, opts Options) (Result, error) {
	return place(req, snap, opts, nil)
}

func place(req Request, snap Snapshot, opts Options, trace *Trace) (Result, error) {
	placement := req.Spec.Placement
	if placement == nil {
		placement = &policyv1alpha1.Placement{}
	}
	var failed error
	for _, term := range termsOf(placement, req) {
		a := attempt{req: req, placement: placement, term: term, opts: opts, trace: trace.term(term.name)}
		clusters, err := a.run(snap)
		if err == nil {
			return Result{Clusters: clusters, AffinityName: term.name}, nil
		}
		if a.trace != nil {
			a.trace.Err = err
		}
		if failed == nil || fitsNobody(failed) && !fitsNobody(err) {
			failed = err
		}
	}
	return Result{}, failed
}

// fitsNobody reports whether err means that no cluster fits.
func fitsNobody(err error) bool {
	var fit *FitError
	return errors.As(err, &fit)
}

// term is one affinity to try.
type term struct {
	name     string
	affinity *policyv1alpha1.ClusterAffinity
	overflow []policyv1alpha1.ClusterAffinity
}

// termsOf returns the affinities to try, in order, from the observed one on.
func termsOf(p *policyv1alpha1.Placement, req Request) []term {
	if len(p.ClusterAffinities) == 0 {
		return []term{{affinity: p.ClusterAffinity}}
	}
	terms := make([]term, len(p.ClusterAffinities))
	start := 0
	for i := range p.ClusterAffinities {
		a := &p.ClusterAffinities[i]
		terms[i] = term{name: a.AffinityName, affinity: &a.ClusterAffinity}
		for j := range a.OverflowAffinities {
			terms[i].overflow = append(terms[i].overflow, a.OverflowAffinities[j].ClusterAffinity)
		}
		if a.AffinityName == req.ObservedAffinity && !req.Fresh {
			start = i
		}
	}
	return terms[start:]
}

// attempt tries one term.
type attempt struct {
	req       Request
	placement *policyv1alpha1.Placement
	term      term
	opts      Options
	trace     *TermTrace // nil: no explanation is asked for
}

func (a *attempt) run(snap Snapshot) ([]workv1alpha2.TargetCluster, error) {
	ask, err := a.compile()
	if err != nil {
		return nil, err
	}
	fit, err := a.filter(ask, snap)
	if err != nil {
		return nil, err
	}
	a.measure(ask, fit)
	framework.Sort(fit)
	if a.wholeWithinRoom() {
		fit = room.ForWhole(fit, amountOf(a.req.Spec))
	}
	in := spread.Input{
		Candidates: fit, Placement: a.placement, Amount: amountOf(a.req.Spec), Unit: "replicas", Fresh: a.req.Fresh,
	}
	if InSets(a.req.Spec) {
		in.Unit = "sets of components"
	}
	chosen, err := spread.Select(in)
	if err != nil {
		return nil, err
	}
	if a.trace != nil {
		a.trace.selected(chosen, spread.Describe(in, chosen))
	}
	return a.assign(chosen)
}

func (a *attempt) compile() (*framework.Request, error) {
	affinity, err := selector.Compile(a.term.affinity)
	if err != nil {
		return nil, err
	}
	ask := &framework.Request{Spec: a.req.Spec, Placement: a.placement, Affinity: affinity, Peers: a.req.Peers.Index(), Barred: a.req.Barred.Reasons(), Returns: a.req.Returns, Home: a.req.Home}
	ask.Ready()
	if !replicas.Overflows(a.placement.ReplicaScheduling) || !IsWorkload(a.req.Spec) {
		return ask, nil
	}
	for i := range a.term.overflow {
		o, err := selector.Compile(&a.term.overflow[i])
		if err != nil {
			return nil, fmt.Errorf("overflow affinity %d: %w", i, err)
		}
		ask.Overflow = append(ask.Overflow, o)
	}
	return ask, nil
}

// measure finds out what every candidate holds, how much capacity it has and to
// which tier it belongs.
func (a *attempt) measure(ask *framework.Request, fit []framework.Candidate) {
	spec := a.req.Spec
	assigned := assignedBy(spec)
	var need estimate.Need
	matters := capacityMatters(spec, a.placement) || a.req.WithinRoom && amountOf(spec) > 0
	if matters {
		need = NeedOf(spec)
	}
	for i := range fit {
		c := &fit[i]
		c.Assigned, c.Targeted, c.Home = assigned[c.Name], ask.Targets(c.Name), slices.Contains(ask.Home, c.Name)
		c.Capacity = math.MaxInt32
		switch {
		case slices.Contains(a.req.Full, c.Name):
			c.Capacity = 0
		case matters:
			c.Capacity = int64(a.fits(c.Cluster, need)) + room.Held(spec, c.Name, a.req.Returns)
		}
		c.Tier = tierOf(ask, c.Cluster)
	}
	a.trace.measured(fit, matters)
}

// wholeWithinRoom reports whether each cluster gets a whole copy, and only where there is room for it.
func (a *attempt) wholeWithinRoom() bool {
	spec := a.req.Spec
	return a.req.WithinRoom && amountOf(spec) > 0 && (InSets(spec) || replicas.Duplicates(a.placement.ReplicaScheduling))
}

// fits returns how many more units c takes.
func (a *attempt) fits(c *framework.Cluster, need estimate.Need) int32 {
	answer, asked := a.req.Estimates[c.Name]
	if asked && !a.opts.LeastCapacity && answer.Bounded() {
		return answer.Fits
	}
	reported := a.free(c).Fits(need)
	if asked {
		return min(reported, answer.Fits)
	}
	return reported
}

// free returns what c has free once reservations are kept.
func (a *attempt) free(c *framework.Cluster) estimate.Capacity {
	capacity := c.Free
	if a.opts.NoModels {
		capacity = capacity.WithoutNodes()
	}
	return capacity.Less(c.Reserved)
}

// capacityMatters reports whether free resources have any influence on the placement.
func capacityMatters(spec *workv1alpha2.ResourceBindingSpec, p *policyv1alpha1.Placement) bool {
	if amountOf(spec) == 0 || replicas.Static(p.ReplicaScheduling) {
		return false
	}
	return !replicas.Duplicates(p.ReplicaScheduling) || len(p.SpreadConstraints) > 0
}

func tierOf(ask *framework.Request, c *framework.Cluster) int {
	if len(ask.Overflow) == 0 || ask.Affinity.Matches(c.Cluster) {
		return 0
	}
	for i, o := range ask.Overflow {
		if o.Matches(c.Cluster) {
			return i + 1
		}
	}
	return 0
}

// errNothingSelected means that there is no cluster to give replicas to.
var errNothingSelected = errors.New("the spread constraints leave no cluster")

func (a *attempt) assign(chosen []framework.Candidate) ([]workv1alpha2.TargetCluster, error) {
	spec := a.req.Spec
	switch {
	case len(chosen) == 0:
		return nil, errNothingSelected
	case !IsWorkload(spec):
		return names(chosen), nil
	case InSets(spec):
		return a.sets(chosen), nil
	}
	in := replicas.Input{
		Desired:    int32(amountOf(spec)),
		Candidates: chosen,
		Fresh:      a.req.Fresh,
		Order:      replicas.OrderOf(string(spec.Resource.UID)),
	}
	if a.trace != nil {
		in.Trace = &replicas.Trace{}
	}
	out, err := replicas.Assign(in, a.placement.ReplicaScheduling)
	if err != nil {
		return nil, err
	}
	if a.req.WithinRoom {
		if err := room.Exceeded(chosen, out); err != nil {
			return nil, err
		}
	}
	if a.opts.KeepEmpty {
		out = withEmpty(out, names(chosen))
	}
	if a.trace != nil {
		a.trace.divided(out, in.Trace.Weights, in.Trace.String())
	}
	return out, nil
}
