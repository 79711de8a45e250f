package replicas

import (
	"cmp"
	"fmt"
	"slices"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Input is a workload and the clusters that were chosen for it.
type Input struct {
	// Desired is the number of replicas to place.
	Desired int32
	// Candidates are the chosen clusters.
	Candidates []framework.Candidate
	// Fresh forgets where replicas run today.
	Fresh bool
	// Order breaks ties.
	Order Order
	// Trace collects how it comes about; nil where nobody asks.
	Trace *Trace
}

// Strategy divides replicas. Its result lists clusters that got any, in no
// particular order.
type Strategy func(in Input) ([]workv1alpha2.TargetCluster, error)

// Assign divides in.Desired as the strategy says and returns the clusters
// sorted by name. A nil strategy duplicates.
func Assign(in Input, s *policyv1alpha1.ReplicaSchedulingStrategy) ([]workv1alpha2.TargetCluster, error) {
	strategy, err := strategyOf(s)
	if err != nil {
		return nil, err
	}
	out, err := strategy(in)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b workv1alpha2.TargetCluster) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// Static reports whether the strategy divides by fixed weights, for which the
// capacity of clusters does not matter.
func Static(s *policyv1alpha1.ReplicaSchedulingStrategy) bool {
	return !Duplicates(s) && s.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceWeighted &&
		(s.WeightPreference == nil || s.WeightPreference.DynamicWeight == "")
}

// Duplicates reports whether every cluster gets all replicas.
func Duplicates(s *policyv1alpha1.ReplicaSchedulingStrategy) bool {
	return s == nil || s.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDuplicated
}

// Overflows reports whether the strategy looks at capacity, so that what does not fit
// into an affinity goes to its overflow affinities.
func Overflows(s *policyv1alpha1.ReplicaSchedulingStrategy) bool {
	return !Duplicates(s) && !Static(s)
}

func strategyOf(s *policyv1alpha1.ReplicaSchedulingStrategy) (Strategy, error) {
	switch {
	case Duplicates(s):
		return duplicate, nil
	case Static(s):
		return func(in Input) ([]workv1alpha2.TargetCluster, error) { return static(in, s.WeightPreference) }, nil
	case s.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceWeighted &&
		s.WeightPreference.DynamicWeight == policyv1alpha1.DynamicWeightByAvailableReplicas:
		return tiered(byCapacity), nil
	case s.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceAggregated:
		return tiered(aggregate), nil
	default:
		return nil, fmt.Errorf("unsupported replica scheduling strategy: type %q, division preference %q",
			s.ReplicaSchedulingType, s.ReplicaDivisionPreference)
	}
}

func duplicate(in Input) ([]workv1alpha2.TargetCluster, error) {
	out := make([]workv1alpha2.TargetCluster, len(in.Candidates))
	for i := range in.Candidates {
		out[i] = workv1alpha2.TargetCluster{Name: in.Candidates[i].Name, Replicas: in.Desired}
	}
	in.Trace.note("every cluster runs %s", count(in.Desired))
	return out, nil
}

// static divides anew each time: weights are a wish about the whole, and where
// replicas run today does not change it.
func static(in Input, pref *policyv1alpha1.ClusterPreferences) ([]workv1alpha2.TargetCluster, error) {
	shares := make([]Share, len(in.Candidates))
	for i := range in.Candidates {
		shares[i].Name = in.Candidates[i].Name
	}
	if pref != nil {
		if err := weigh(shares, in.Candidates, pref.StaticWeightList); err != nil {
			return nil, err
		}
	}
	if !slices.ContainsFunc(shares, func(s Share) bool { return s.Weight > 0 }) {
		for i := range shares {
			shares[i].Weight = 1
		}
	}
	Webster(in.Desired, shares, in.Order)
	in.Trace.divided(in.Desired, "fixed weights", "weight", shares)
	return targets(shares), nil
}

// weigh gives every share the highest weight of a rule that means its cluster.
func weigh(shares []Share, clusters []framework.Candidate, rules []policyv1alpha1.StaticClusterWeight) error {
	for r := range rules {
		match, err := selector.Compile(&rules[r].TargetCluster)
		if err != nil {
			return err
		}
		for i := range clusters {
			if rules[r].Weight > shares[i].Weight && match.Matches(clusters[i].Cluster.Cluster) {
				shares[i].Weight = rules[r].Weight
			}
		}
	}
	return nil
}

// divider gives amount to clusters that weigh what shares say; the weights add
// up to amount at least.
type divider func(amount int32, shares []Share, cs []framework.Candidate, order Order)

func byCapacity(amount int32, shares []Share, _ []framework.Candidate, order Order) {
	Webster(amount, shares, order)
}

// aggregate uses as few clusters as will do: those that replicas are brought back
// to first, then those that run some already, then those with the most capacity.
func aggregate(amount int32, shares []Share, cs []framework.Candidate, order Order) {
	index := make([]int, len(shares))
	for i := range index {
		index[i] = i
	}
	slices.SortFunc(index, func(a, b int) int {
		return cmp.Or(
			-compareBool(cs[a].Home, cs[b].Home),
			-compareBool(cs[a].Assigned > 0, cs[b].Assigned > 0),
			cmp.Compare(shares[b].Weight, shares[a].Weight),
			cmp.Compare(shares[a].Name, shares[b].Name),
		)
	})
	var sum int64
	for _, i := range index {
		if sum >= int64(amount) {
			shares[i].Weight = 0
			continue
		}
		sum += shares[i].Weight
	}
	Webster(amount, shares, order)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// tiered fills the tiers of candidates in order, each as far as its capacity goes.
func tiered(divide divider) Strategy {
	return func(in Input) ([]workv1alpha2.TargetCluster, error) {
		last := 0
		for i := range in.Candidates {
			last = max(last, in.Candidates[i].Tier)
		}
		if last == 0 {
			return dynamic(in, divide)
		}
		return fillTiers(in, last, divide)
	}
}

func fillTiers(in Input, last int, divide divider) ([]workv1alpha2.TargetCluster, error) {
	var out []workv1alpha2.TargetCluster
	left, capacity := in.Desired, int64(0)
	for tier := 0; tier <= last && left > 0; tier++ {
		part := Input{Fresh: in.Fresh, Order: in.Order, Trace: in.Trace}
		var available int64
		for _, c := range in.Candidates {
			if c.Tier == tier {
				part.Candidates = append(part.Candidates, c)
				available += c.Available()
			}
		}
		capacity += available
		part.Desired = int32(min(int64(left), available))
		if part.Desired <= 0 {
			continue
		}
		in.Trace.tier(tier)
		got, err := dynamic(part, divide)
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
		left -= part.Desired
	}
	if left > 0 {
		return nil, shortage(capacity)
	}
	return out, nil
}

// weighting is what clusters weigh when replicas are divided among them.
type weighting struct {
	// by says in words what replicas are divided by, name what a weight is.
	by, name string
	weight   func(c *framework.Candidate) int64
	// onTop keeps what runs, and divides only what comes in addition.
	onTop bool
}

// What clusters weigh: all that they could run, where it is forgotten who runs
// what; what they run, where some have to go; and what they have free, where
// some come in addition.
var (
	byAvailable = weighting{"room, whoever runs them now", "room", func(c *framework.Candidate) int64 { return c.Available() }, false}
	byAssigned  = weighting{"what each cluster runs", "runs", func(c *framework.Candidate) int64 { return int64(c.Assigned) }, false}
	byFree      = weighting{"the room that is left", "room", func(c *framework.Candidate) int64 { return c.Capacity }, true}
)

// dynamic keeps replicas where they run: it adds only what is missing, and
// takes away only what is too many.
func dynamic(in Input, divide divider) ([]workv1alpha2.TargetCluster, error) {
	var assigned int64
	for i := range in.Candidates {
		assigned += int64(in.Candidates[i].Assigned)
	}
	switch {
	case in.Fresh:
		return divideBy(byAvailable, in.Desired, in, divide)
	case assigned == int64(in.Desired):
		return stay(in), nil
	case assigned > int64(in.Desired):
		return divideBy(byAssigned, in.Desired, in, divide)
	}
	if assigned > 0 {
		in.Trace.stay(int32(assigned))
	}
	return divideBy(byFree, in.Desired-int32(assigned), in, divide)
}

// stay leaves everything as it is.
func stay(in Input) []workv1alpha2.TargetCluster {
	shares := make([]Share, len(in.Candidates))
	for i := range in.Candidates {
		shares[i] = Share{Name: in.Candidates[i].Name, Count: in.Candidates[i].Assigned}
	}
	in.Trace.stay(in.Desired)
	return targets(shares)
}

func divideBy(by weighting, amount int32, in Input, divide divider) ([]workv1alpha2.TargetCluster, error) {
	shares := make([]Share, len(in.Candidates))
	var sum int64
	for i := range in.Candidates {
		shares[i] = Share{Name: in.Candidates[i].Name, Weight: by.weight(&in.Candidates[i])}
		sum += shares[i].Weight
	}
	if sum < int64(amount) {
		return nil, shortage(sum)
	}
	divide(amount, shares, in.Candidates, in.Order)
	if in.Fresh {
		bringBack(shares, in.Candidates)
	}
	in.Trace.divided(amount, by.by, by.name, shares)
	for i := range shares {
		if by.onTop {
			shares[i].Count += in.Candidates[i].Assigned
		}
	}
	return targets(shares), nil
}

// bringBack gives one replica to each cluster that they are brought back to, has room and would get none: that another one
// has more room is no reason not to return. It is taken from the one that has most, of those that are not brought back to
// where that can be.
func bringBack(shares []Share, cs []framework.Candidate) {
	for i := range shares {
		if !cs[i].Home || shares[i].Weight <= 0 || shares[i].Count > 0 {
			continue
		}
		from := -1
		for j := range shares {
			if shares[j].Count == 0 || cs[j].Home && shares[j].Count == 1 {
				continue
			}
			if from < 0 || cmp.Or(-compareBool(cs[j].Home, cs[from].Home), cmp.Compare(shares[j].Count, shares[from].Count)) > 0 {
				from = j
			}
		}
		if from >= 0 {
			shares[from].Count--
			shares[i].Count++
		}
	}
}

func shortage(capacity int64) error {
	return &framework.UnschedulableError{
		Message: fmt.Sprintf("Clusters available replicas %d are not enough to schedule.", capacity),
	}
}

func targets(shares []Share) []workv1alpha2.TargetCluster {
	out := make([]workv1alpha2.TargetCluster, 0, len(shares))
	for _, s := range shares {
		if s.Count > 0 {
			out = append(out, workv1alpha2.TargetCluster{Name: s.Name, Replicas: s.Count})
		}
	}
	return out
}
