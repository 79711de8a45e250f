package spread_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/spread"
)

// candidate reads "eu-1 region=eu zone=a zone=b provider=acme rack=1 room=5
// runs=2"; what is no field is a label. What runs is preferred.
func candidate(line string) framework.Candidate {
	fields := strings.Fields(line)
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: fields[0], Labels: map[string]string{}}}
	out := framework.Candidate{Capacity: 100}
	for _, f := range fields[1:] {
		k, v, _ := strings.Cut(f, "=")
		switch k {
		case "region":
			c.Spec.Region = v
		case "zone":
			c.Spec.Zones = append(c.Spec.Zones, v)
		case "provider":
			c.Spec.Provider = v
		case "room":
			_, _ = fmt.Sscan(v, &out.Capacity)
		case "runs":
			_, _ = fmt.Sscan(v, &out.Assigned)
			out.Targeted, out.Score = true, 100
		default:
			c.Labels[k] = v
		}
	}
	out.Cluster = framework.NewCluster(c)
	return out
}

// constraint reads "zone 2..3"; 0 as the last means no maximum.
func constraint(text string) policyv1alpha1.SpreadConstraint {
	by, bounds, _ := strings.Cut(text, " ")
	var c policyv1alpha1.SpreadConstraint
	_, _ = fmt.Sscanf(bounds, "%d..%d", &c.MinGroups, &c.MaxGroups)
	switch by {
	case "cluster", "region", "zone", "provider", "planet":
		c.SpreadByField = policyv1alpha1.SpreadFieldValue(by)
	case "nothing":
	default:
		c.SpreadByLabel = by
	}
	return c
}

var byCapacity = &policyv1alpha1.ReplicaSchedulingStrategy{
	ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated,
}

var byWeight = &policyv1alpha1.ReplicaSchedulingStrategy{
	ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
}

func input(clusters, constraints []string, strategy *policyv1alpha1.ReplicaSchedulingStrategy, amount int64) spread.Input {
	p := &policyv1alpha1.Placement{ReplicaScheduling: strategy}
	for _, c := range constraints {
		p.SpreadConstraints = append(p.SpreadConstraints, constraint(c))
	}
	in := spread.Input{Placement: p, Amount: amount, Unit: "replicas"}
	for _, c := range clusters {
		in.Candidates = append(in.Candidates, candidate(c))
	}
	framework.Sort(in.Candidates)
	return in
}

func names(cs []framework.Candidate) string {
	out := make([]string, len(cs))
	for i := range cs {
		out[i] = cs[i].Name
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestSelect(t *testing.T) {
	world := []string{
		"eu-1 region=eu zone=eu-a provider=acme rack=1", "eu-2 region=eu zone=eu-b provider=other rack=2",
		"us-1 region=us zone=us-a provider=acme rack=1", "us-2 region=us zone=us-a zone=us-b provider=acme rack=3",
		"as-1 region=as zone=as-a provider=other rack=3",
	}
	roomy := []string{
		"eu-1 region=eu room=5 runs=10", "us-1 region=us room=30", "us-2 region=us room=30",
	}
	cases := map[string]struct {
		clusters, constraints []string
		strategy              *policyv1alpha1.ReplicaSchedulingStrategy
		amount                int64
		fresh                 bool
		want, wantErr         string
	}{
		"without constraints all":                       {clusters: world, want: "as-1 eu-1 eu-2 us-1 us-2"},
		"fixed weights do not mind constraints":         {clusters: world, constraints: []string{"cluster 9..9"}, strategy: byWeight, want: "as-1 eu-1 eu-2 us-1 us-2"},
		"at most so many clusters, by name":             {clusters: world, constraints: []string{"cluster 1..2"}, want: "as-1 eu-1"},
		"a constraint that names nothing means cluster": {clusters: world, constraints: []string{"nothing 1..2"}, want: "as-1 eu-1"},
		"no maximum":                                  {clusters: world, constraints: []string{"cluster 2..0"}, want: "as-1 eu-1 eu-2 us-1 us-2"},
		"too few clusters":                            {clusters: world[:1], constraints: []string{"cluster 2..0"}, wantErr: "spread over 2 clusters: only 1 fits"},
		"by region, as many as are needed":            {clusters: world, constraints: []string{"region 2..3", "cluster 2..9"}, want: "eu-1 eu-2 us-1 us-2"},
		"by region and no more clusters than allowed": {clusters: world, constraints: []string{"cluster 2..3", "region 3..3"}, want: "as-1 eu-1 us-1"},
		"by provider":                                 {clusters: world, constraints: []string{"provider 2..2", "cluster 2..2"}, want: "as-1 eu-1"},
		"by label":                                    {clusters: world, constraints: []string{"rack 3..3", "cluster 3..3"}, want: "as-1 eu-1 eu-2"},
		"by label alone":                              {clusters: world, constraints: []string{"rack 1..1"}, want: "eu-1 us-1"},
		"by zone":                                     {clusters: world, constraints: []string{"zone 3..0", "cluster 3..3"}, want: "as-1 eu-1 eu-2"},
		"a cluster in two zones counts in each":       {clusters: world, constraints: []string{"zone 2..2", "cluster 1..1"}, want: "us-2"},
		"a cluster of more zones than are allowed":    {clusters: world[2:4], constraints: []string{"region 1..1", "zone 1..1"}, want: "us-1"},
		"too few zones, which are named":              {clusters: world[:2], constraints: []string{"zone 3..3"}, wantErr: "spread over 3 zones: only 2 have clusters that fit (eu-a, eu-b)"},
		"one of two racks":                            {clusters: world[:1], constraints: []string{"rack 2..2"}, wantErr: "spread over 2 values of label rack: only 1 has clusters that fit (1)"},
		"region and provider together":                {clusters: world, constraints: []string{"region 2..2", "provider 1..1"}, want: "eu-1 us-1 us-2"},
		"by region first where that will do":          {clusters: world, constraints: []string{"zone 1..9", "region 1..1", "cluster 1..9"}, want: "eu-1 eu-2"},
		"each is possible, but not together":          {clusters: world, constraints: []string{"region 1..1", "zone 4..0", "cluster 1..2"}, wantErr: "no choice of the 5 clusters that fit spreads over 1 to 2 clusters and 1 region and 4 zones or more"},
		"more at least than at most":                  {clusters: world, constraints: []string{"zone 3..2"}, wantErr: "spread by zone: at least 3 and at most 2 cannot be"},
		"two constraints by one thing are narrowed":   {clusters: world, constraints: []string{"cluster 1..4", "cluster 2..3"}, want: "as-1 eu-1 eu-2"},
		"a field that there is not":                   {clusters: world, constraints: []string{"planet 1..1"}, wantErr: `spread by "planet": clusters have no such field`},
		"less than nothing is no minimum":             {clusters: world, constraints: []string{"region -5..-3", "cluster -1..-1"}, want: "eu-1 eu-2"},
		"more regions than clusters":                  {clusters: world, constraints: []string{"region 3..3", "cluster 1..2"}, want: "as-1 eu-1 us-1"},
		"one cluster in each region":                  {clusters: world, constraints: []string{"region 2..2", "cluster 1..1"}, want: "eu-1 us-1"},
		"no more clusters than regions need":          {clusters: world, constraints: []string{"region 1..2", "cluster 1..1"}, want: "eu-1"},
		"fewer regions than are there":                {clusters: world, constraints: []string{"region 4..4", "cluster 1..1"}, wantErr: "spread over 4 regions: only 3 have clusters that fit (as, eu, us)"},

		"clusters with too little room are exchanged":          {clusters: []string{"a room=1", "b room=2", "c room=9", "d room=8"}, constraints: []string{"cluster 1..2"}, strategy: byCapacity, amount: 17, want: "c d"},
		"but not where all run all replicas":                   {clusters: []string{"a room=1 runs=1", "b room=2 runs=1", "c room=9"}, constraints: []string{"cluster 1..2"}, amount: 5, want: "a b"},
		"room that no choice has":                              {clusters: []string{"a room=1", "b room=2", "c room=3"}, constraints: []string{"cluster 1..2"}, strategy: byCapacity, amount: 6, wantErr: "no enough resource when selecting 2 clusters: room for 5 of 6 replicas"},
		"the roomiest region":                                  {clusters: roomy, constraints: []string{"region 1..1", "cluster 1..9"}, strategy: byCapacity, amount: 50, want: "us-1 us-2"},
		"what runs stays, and another region is added":         {clusters: roomy, constraints: []string{"region 1..2", "cluster 1..9"}, strategy: byCapacity, amount: 20, want: "eu-1 us-1 us-2"},
		"what runs stays although another region has more":     {clusters: roomy, constraints: []string{"region 1..2", "cluster 1..9"}, amount: 10, want: "eu-1"},
		"a fresh look forgets what runs":                       {clusters: roomy, constraints: []string{"region 1..2", "cluster 1..9"}, amount: 10, fresh: true, want: "us-1 us-2"},
		"what runs moves where it has no room and nobody else": {clusters: roomy, constraints: []string{"region 1..1", "cluster 1..9"}, strategy: byCapacity, amount: 20, want: "us-1 us-2"},
		"what runs moves where constraints forbid it":          {clusters: []string{"eu-1 region=eu runs=1", "eu-2 region=eu", "us-1 region=us runs=1"}, constraints: []string{"region 1..1", "cluster 1..9"}, amount: 1, want: "eu-1 eu-2"},
		"what runs stays within the most clusters":             {clusters: []string{"eu-1 region=eu", "eu-2 region=eu runs=1", "eu-3 region=eu runs=1"}, constraints: []string{"region 1..1", "cluster 1..2"}, amount: 1, want: "eu-2 eu-3"},
		"the roomiest clusters where only they will do":        {clusters: []string{"eu-1 region=eu room=1 runs=3", "eu-2 region=eu room=2", "eu-3 region=eu room=9"}, constraints: []string{"region 1..1", "cluster 1..2"}, strategy: byCapacity, amount: 13, want: "eu-1 eu-3"},
		"another choice where the best one lacks room":         {clusters: []string{"a region=a room=9", "b1 region=b room=5", "b2 region=b room=5", "c region=c room=7"}, constraints: []string{"region 1..2", "cluster 1..2"}, strategy: byCapacity, amount: 16, want: "a c"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := input(tc.clusters, tc.constraints, tc.strategy, tc.amount)
			in.Fresh = tc.fresh
			got, err := spread.Select(in)
			if text := fmt.Sprint(err); text != tc.wantErr && (err != nil || tc.wantErr != "") {
				t.Errorf("error %q, want %q", text, tc.wantErr)
			}
			if names(got) != tc.want {
				t.Errorf("chose %q, want %q", names(got), tc.want)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	clusters := []string{"eu-1 region=eu zone=a", "eu-2 region=eu zone=a zone=b", "us-1 region=us zone=x"}
	cases := map[string]struct {
		constraints []string
		strategy    *policyv1alpha1.ReplicaSchedulingStrategy
		want        string
	}{
		"nothing":             {nil, nil, ""},
		"fixed weights":       {[]string{"cluster 1..2"}, byWeight, "replicas are divided by fixed weights: spread constraints do not count"},
		"clusters":            {[]string{"cluster 1..2"}, nil, "2 of 3 clusters that fit, wanted 1 to 2 clusters"},
		"regions and a label": {[]string{"zone 1..0", "region 1..1"}, nil, "2 of 3 clusters that fit, wanted 1 cluster or more; region eu, wanted 1 region; zone a, b, wanted 1 zone or more"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := input(clusters, tc.constraints, tc.strategy, 1)
			chosen, err := spread.Select(in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, spread.Describe(in, chosen)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzSelect compares with all choices that there are: what is selected
// satisfies every constraint, has capacity for all where any choice has, and
// nothing is selected only where no choice satisfies the constraints.
func FuzzSelect(f *testing.F) {
	for i := range uint64(64) {
		f.Add(i)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		in := randomInput(rnd, 1+rnd.IntN(8))
		chosen, err := spread.Select(in)
		var capacity *framework.UnschedulableError
		possible, roomy := false, false
		for set := range 1 << len(in.Candidates) {
			choice := subset(in.Candidates, set)
			if satisfies(in, choice) {
				possible = true
				roomy = roomy || available(choice) >= in.Amount
			}
		}
		switch {
		case errors.As(err, &capacity):
			if roomy {
				t.Errorf("there is room: %v", err)
			}
		case err != nil:
			if possible {
				t.Errorf("a choice is possible: %v\n%v", err, in.Placement.SpreadConstraints)
			}
		case !satisfies(in, chosen):
			t.Errorf("%s does not satisfy %v", names(chosen), in.Placement.SpreadConstraints)
		case roomy && in.Placement.ReplicaScheduling != nil && available(chosen) < in.Amount:
			t.Errorf("%s has room for %d of %d", names(chosen), available(chosen), in.Amount)
		}
	})
}

func randomInput(rnd *rand.Rand, n int) spread.Input {
	var clusters, constraints []string
	for i := range n {
		line := fmt.Sprintf("c%d region=r%d provider=p%d rack=k%d zone=z%d room=%d", i, rnd.IntN(3), rnd.IntN(3), rnd.IntN(4), rnd.IntN(4), rnd.IntN(20))
		if rnd.IntN(3) == 0 {
			line += fmt.Sprintf(" zone=z%d", rnd.IntN(4))
		}
		if rnd.IntN(4) == 0 {
			line += fmt.Sprintf(" runs=%d", rnd.IntN(5))
		}
		clusters = append(clusters, line)
	}
	for _, by := range []string{"cluster", "region", "zone", "provider", "rack"} {
		if rnd.IntN(2) == 0 {
			constraints = append(constraints, fmt.Sprintf("%s %d..%d", by, rnd.IntN(4), rnd.IntN(5)))
		}
	}
	strategy := byCapacity
	if rnd.IntN(2) == 0 {
		strategy = nil
	}
	in := input(clusters, constraints, strategy, int64(rnd.IntN(60)))
	in.Fresh = rnd.IntN(3) == 0
	return in
}

func subset(cs []framework.Candidate, set int) []framework.Candidate {
	var out []framework.Candidate
	for i := range cs {
		if set&(1<<i) != 0 {
			out = append(out, cs[i])
		}
	}
	return out
}

// satisfies counts, as the constraints are written.
func satisfies(in spread.Input, chosen []framework.Candidate) bool {
	if len(chosen) == 0 {
		return false
	}
	for _, c := range in.Placement.SpreadConstraints {
		by, err := framework.GroupingOf(&c)
		if err != nil {
			return false
		}
		groups := map[string]bool{}
		for i := range chosen {
			for _, v := range by.AppendValues(nil, chosen[i].Cluster) {
				groups[v] = true
			}
		}
		if len(groups) < max(c.MinGroups, 1) || c.MaxGroups > 0 && len(groups) > c.MaxGroups {
			return false
		}
	}
	return true
}

func available(cs []framework.Candidate) int64 {
	var sum int64
	for i := range cs {
		sum += cs[i].Available()
	}
	return sum
}
