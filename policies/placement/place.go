package placement

import (
	"errors"
	"fmt"
	"math"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/plugins"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
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
}

// Result is a placement.
type Result struct {
	// Clusters, sorted by name. Resources without replicas have zero of them.
	Clusters []workv1alpha2.TargetCluster
	// AffinityName is the term that was used; empty where there are no terms.
	AffinityName string
	// Refusals of clusters that do not fit, sorted by cluster.
	Refusals []Refusal
	// Scores of clusters that fit, most preferred first.
	Scores []Score
}

// Score of a cluster that fits.
type Score struct {
	Cluster string
	Score   int64
	// Available replicas, those that run there today included.
	Available int64
	// Selected is false where spread constraints left it out.
	Selected bool
}

// Place decides where the binding runs.
//
// Errors: *FitError where no cluster fits; *UnschedulableError where those
// that fit lack room; anything else means that the placement asks for what
// cannot be.
func Place(req Request, snap Snapshot, opts Options) (Result, error) {
	placement := req.Spec.Placement
	if placement == nil {
		placement = &policyv1alpha1.Placement{}
	}
	terms := termsOf(placement, req)
	var first error
	for _, term := range terms {
		result, err := attempt(req, placement, term, snap, opts)
		if err == nil {
			return result, nil
		}
		if first == nil {
			first = err
		}
	}
	return Result{}, first
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

func attempt(req Request, p *policyv1alpha1.Placement, t term, snap Snapshot, opts Options) (Result, error) {
	ask, err := compile(req, p, t)
	if err != nil {
		return Result{}, err
	}
	fit, refusals := filter(ask, snap, opts)
	if len(fit) == 0 {
		return Result{}, &FitError{Clusters: len(refusals), Refusals: refusals}
	}
	measure(req, ask, fit)
	framework.Sort(fit)
	chosen, err := spread.Select(spread.Input{Candidates: fit, Placement: p, Replicas: req.Spec.Replicas})
	if err != nil {
		return Result{}, err
	}
	clusters, err := assign(req, p, chosen, opts)
	if err != nil {
		return Result{}, err
	}
	return Result{Clusters: clusters, AffinityName: t.name, Refusals: refusals, Scores: scores(fit, chosen)}, nil
}

func compile(req Request, p *policyv1alpha1.Placement, t term) (*framework.Request, error) {
	affinity, err := selector.Compile(t.affinity)
	if err != nil {
		return nil, err
	}
	ask := &framework.Request{Spec: req.Spec, Placement: p, Affinity: affinity, Peers: req.Peers}
	if !IsWorkload(req.Spec) {
		return ask, nil
	}
	for i := range t.overflow {
		o, err := selector.Compile(&t.overflow[i])
		if err != nil {
			return nil, fmt.Errorf("overflow affinity %d: %w", i, err)
		}
		ask.Overflow = append(ask.Overflow, o)
	}
	return ask, nil
}

// filter asks every plugin about every cluster. Clusters that are going away
// are no candidates and are not counted.
func filter(ask *framework.Request, snap Snapshot, opts Options) ([]framework.Candidate, []Refusal) {
	active := opts.Plugins
	if active == nil {
		active = plugins.All()
	}
	filters, scorers := split(active)
	fit := make([]framework.Candidate, 0, len(snap.clusters))
	var refusals []Refusal
next:
	for _, c := range snap.clusters {
		if c.DeletionTimestamp != nil {
			continue
		}
		for _, f := range filters {
			if reason := f.Filter(ask, c); reason != "" {
				refusals = append(refusals, Refusal{c.Name, f.Name(), reason})
				continue next
			}
		}
		candidate := framework.Candidate{Cluster: c}
		for _, s := range scorers {
			candidate.Score += s.Score(ask, c)
		}
		fit = append(fit, candidate)
	}
	return fit, refusals
}

func split(active []framework.Plugin) (filters []framework.Filter, scorers []framework.Score) {
	for _, p := range active {
		if f, ok := p.(framework.Filter); ok {
			filters = append(filters, f)
		}
		if s, ok := p.(framework.Score); ok {
			scorers = append(scorers, s)
		}
	}
	return filters, scorers
}

// measure finds out what every candidate holds, how much room it has and to
// which tier it belongs.
func measure(req Request, ask *framework.Request, fit []framework.Candidate) {
	held := make(map[string]int32, len(req.Spec.Clusters))
	for _, t := range req.Spec.Clusters {
		held[t.Name] = t.Replicas
	}
	matters := roomMatters(req.Spec, ask.Placement)
	for i := range fit {
		c := &fit[i]
		c.Held = held[c.Name]
		c.Room = math.MaxInt32
		if matters {
			c.Room = int64(estimate.General(c.Status.ResourceSummary, c.Promised, req.Spec.ReplicaRequirements))
		}
		c.Tier = tierOf(ask, c.Cluster)
	}
}

// roomMatters says whether free resources have any influence on the placement.
func roomMatters(spec *workv1alpha2.ResourceBindingSpec, p *policyv1alpha1.Placement) bool {
	if spec.Replicas == 0 || replicas.Static(p.ReplicaScheduling) {
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

// errNothingSelected means that the constraints left no cluster.
var errNothingSelected = errors.New("the number of clusters is less than the cluster spreadConstraint.MinGroups")

func assign(req Request, p *policyv1alpha1.Placement, chosen []framework.Candidate, opts Options) ([]workv1alpha2.TargetCluster, error) {
	if len(chosen) == 0 {
		return nil, errNothingSelected
	}
	if !IsWorkload(req.Spec) || len(req.Spec.Components) > 1 {
		return names(chosen), nil
	}
	out, err := replicas.Assign(replicas.Input{
		Desired:    req.Spec.Replicas,
		Candidates: chosen,
		Fresh:      req.Fresh,
		Order:      replicas.OrderOf(string(req.Spec.Resource.UID)),
	}, p.ReplicaScheduling)
	if err != nil {
		return nil, err
	}
	if opts.KeepEmpty {
		out = withEmpty(out, names(chosen))
	}
	return out, nil
}

// IsWorkload says whether the binding has replicas to divide.
func IsWorkload(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.Replicas > 0 || spec.ReplicaRequirements != nil || len(spec.Components) > 0
}
