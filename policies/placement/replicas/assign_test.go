package replicas_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
)

// spot is a candidate in short.
type spot struct {
	name     string
	capacity int64
	held     int32
	tier     int
}

// candidates are clusters of the spots, each labelled with its name.
func candidates(spots []spot) []framework.Candidate {
	out := make([]framework.Candidate, len(spots))
	for i, s := range spots {
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: s.name, Labels: map[string]string{"is": s.name}}}
		out[i] = framework.Candidate{Cluster: framework.NewCluster(cluster), Capacity: s.capacity, Assigned: s.held, Tier: s.tier}
	}
	return out
}

// outcome is all that comes out of a division.
type outcome struct {
	Targets map[string]int32
	Error   string
	Weights map[string]int64
	Words   string
}

// assign divides, and again without a trace: nobody's question changes an answer.
func assign(t *testing.T, in replicas.Input, s *policyv1alpha1.ReplicaSchedulingStrategy) outcome {
	t.Helper()
	untraced, plainErr := replicas.Assign(in, s)
	in.Trace = &replicas.Trace{}
	got, err := replicas.Assign(in, s)
	if diff := cmp.Diff(untraced, got); diff != "" || (plainErr == nil) != (err == nil) {
		t.Errorf("a trace changes what comes out: %v, %v (-without +with):\n%s", plainErr, err, diff)
	}
	out := outcome{Weights: in.Trace.Weights, Words: in.Trace.String()}
	if err != nil {
		out.Error = err.Error()
	}
	for i, target := range got {
		if i > 0 && got[i-1].Name >= target.Name {
			t.Errorf("clusters are not sorted: %v", got)
		}
		if out.Targets == nil {
			out.Targets = map[string]int32{}
		}
		out.Targets[target.Name] = target.Replicas
	}
	return out
}

// The strategies, but for the lists of fixed weights.
var (
	duplicated = &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDuplicated}
	aggregated = divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil)
	byCapacity = divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		&policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas})
	evenly = divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, nil)
)

func divided(how policyv1alpha1.ReplicaDivisionPreference, by *policyv1alpha1.ClusterPreferences) *policyv1alpha1.ReplicaSchedulingStrategy {
	return &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: how, WeightPreference: by,
	}
}

// weighted divides by fixed weights.
func weighted(rules ...policyv1alpha1.StaticClusterWeight) *policyv1alpha1.ReplicaSchedulingStrategy {
	return divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, &policyv1alpha1.ClusterPreferences{StaticWeightList: rules})
}

func weight(n int64, clusters ...string) policyv1alpha1.StaticClusterWeight {
	return policyv1alpha1.StaticClusterWeight{Weight: n, TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: clusters}}
}

// TestDuplicate: every cluster gets all replicas, whatever its capacity.
func TestDuplicate(t *testing.T) {
	spots := []spot{{"b", 0, 7, 1}, {"a", 1, 0, 0}}
	want := outcome{Targets: map[string]int32{"a": 3, "b": 3}, Words: "every cluster runs 3 replicas"}
	for name, s := range map[string]*policyv1alpha1.ReplicaSchedulingStrategy{
		"where it is asked for": duplicated, "where nothing is asked for": nil,
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, assign(t, replicas.Input{Desired: 3, Candidates: candidates(spots)}, s)); diff != "" {
				t.Errorf("division (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("kinds without replicas stand everywhere, too", func(t *testing.T) {
		want := outcome{Targets: map[string]int32{"a": 0, "b": 0}, Words: "every cluster runs 0 replicas"}
		if diff := cmp.Diff(want, assign(t, replicas.Input{Candidates: candidates(spots)}, duplicated)); diff != "" {
			t.Errorf("division (-want +got):\n%s", diff)
		}
	})
}

// TestFixedWeights: replicas are divided by the highest weight that a rule gives a
// cluster, whatever capacity there is and wherever they run.
func TestFixedWeights(t *testing.T) {
	labelled := func(n int64, operator metav1.LabelSelectorOperator, values ...string) policyv1alpha1.StaticClusterWeight {
		return policyv1alpha1.StaticClusterWeight{Weight: n, TargetCluster: policyv1alpha1.ClusterAffinity{
			LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "is", Operator: operator, Values: values}}},
		}}
	}
	cases := map[string]struct {
		desired  int32
		strategy *policyv1alpha1.ReplicaSchedulingStrategy
		order    replicas.Order
		want     outcome
	}{
		"two to one": {
			6, weighted(weight(2, "a"), weight(1, "b")), replicas.Ascending,
			outcome{map[string]int32{"a": 4, "b": 2}, "", map[string]int64{"a": 2, "b": 1}, "6 replicas divided by fixed weights: a 4 (weight 2 of 3), b 2 (weight 1 of 3)"},
		},
		"the highest of several rules counts": {
			4, weighted(weight(3, "a", "b"), weight(1, "a"), weight(1, "b")), replicas.Ascending,
			outcome{map[string]int32{"a": 2, "b": 2}, "", map[string]int64{"a": 3, "b": 3}, "4 replicas divided by fixed weights: a 2 (weight 3 of 6), b 2 (weight 3 of 6)"},
		},
		"a rule that names none means all": {
			4, weighted(weight(1), weight(3, "c")), replicas.Ascending,
			outcome{map[string]int32{"a": 1, "b": 1, "c": 2}, "", map[string]int64{"a": 1, "b": 1, "c": 3}, "4 replicas divided by fixed weights: c 2 (weight 3 of 5), a 1 (weight 1 of 5), b 1 (weight 1 of 5)"},
		},
		"rules mean clusters by labels, too": {
			1, weighted(labelled(5, metav1.LabelSelectorOpIn, "b")), replicas.Ascending,
			outcome{map[string]int32{"b": 1}, "", map[string]int64{"b": 5}, "1 replica divided by fixed weights: b 1 (weight 5 of 5)"},
		},
		"who got none is told, too": {
			1, weighted(weight(2, "a"), weight(1, "b")), replicas.Ascending,
			outcome{map[string]int32{"a": 1}, "", map[string]int64{"a": 2, "b": 1}, "1 replica divided by fixed weights: a 1 (weight 2 of 3), b 0 (weight 1 of 3)"},
		},
		"rules that mean no cluster: all weigh the same": {
			3, weighted(weight(9, "elsewhere")), replicas.Ascending,
			outcome{map[string]int32{"a": 1, "b": 1, "c": 1}, "", map[string]int64{"a": 1, "b": 1, "c": 1}, "3 replicas divided by fixed weights: a 1 (weight 1 of 3), b 1 (weight 1 of 3), c 1 (weight 1 of 3)"},
		},
		"no rules: all weigh the same, a remainder goes to the first": {
			4, evenly, replicas.Ascending,
			outcome{map[string]int32{"a": 2, "b": 1, "c": 1}, "", map[string]int64{"a": 1, "b": 1, "c": 1}, "4 replicas divided by fixed weights: a 2 (weight 1 of 3), b 1 (weight 1 of 3), c 1 (weight 1 of 3)"},
		},
		"a remainder goes to the last in the other order": {
			4, evenly, replicas.Descending,
			outcome{map[string]int32{"a": 1, "b": 1, "c": 2}, "", map[string]int64{"a": 1, "b": 1, "c": 1}, "4 replicas divided by fixed weights: c 2 (weight 1 of 3), a 1 (weight 1 of 3), b 1 (weight 1 of 3)"},
		},
		"none to divide": {
			0, weighted(weight(1, "a")), replicas.Ascending,
			outcome{nil, "", map[string]int64{"a": 1}, "0 replicas divided by fixed weights: a 0 (weight 1 of 1)"},
		},
		"a rule whose labels cannot be read": {
			1, weighted(labelled(5, "Near", "b")), replicas.Ascending,
			outcome{Error: `label selector of a cluster affinity: "Near" is not a valid label selector operator`},
		},
	}
	// Without capacity for any, and with more running than are asked for.
	spots := []spot{{"c", 0, 0, 0}, {"a", 0, 9, 0}, {"b", 0, 0, 1}}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := replicas.Input{Desired: tc.desired, Candidates: candidates(spots), Order: tc.order}
			if diff := cmp.Diff(tc.want, assign(t, in, tc.strategy)); diff != "" {
				t.Errorf("division (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCapacity: replicas stay where they run; what is missing goes by the capacity that is
// left, what is too many is taken by what each cluster runs, and where all start
// afresh, by all that a cluster could run.
func TestCapacity(t *testing.T) {
	cases := map[string]struct {
		desired int32
		spots   []spot
		fresh   bool
		want    outcome
	}{
		"new ones go by room": {
			6, []spot{{"b", 10, 0, 0}, {"a", 20, 0, 0}, {"full", 0, 0, 0}}, false,
			outcome{map[string]int32{"a": 4, "b": 2}, "", map[string]int64{"a": 20, "b": 10}, "6 replicas divided by the room that is left: a 4 (room 20 of 30), b 2 (room 10 of 30)"},
		},
		"more go on top of what runs": {
			7, []spot{{"a", 10, 1, 0}, {"b", 20, 0, 0}, {"full", 0, 3, 0}}, false,
			outcome{
				map[string]int32{"a": 2, "b": 2, "full": 3}, "", map[string]int64{"a": 10, "b": 20},
				"4 replicas stay where they run; 3 replicas divided by the room that is left: b 2 (room 20 of 30), a 1 (room 10 of 30)",
			},
		},
		"as many as run stay": {
			4, []spot{{"a", 0, 1, 0}, {"b", 50, 0, 0}, {"c", 0, 3, 0}}, false,
			outcome{map[string]int32{"a": 1, "c": 3}, "", nil, "4 replicas stay where they run"},
		},
		"one that runs stays": {
			1, []spot{{"a", 0, 1, 0}, {"b", 50, 0, 0}}, false,
			outcome{map[string]int32{"a": 1}, "", nil, "1 replica stays where it runs"},
		},
		"one that runs stays, and more go on top": {
			2, []spot{{"a", 0, 1, 0}, {"b", 50, 0, 0}}, false,
			outcome{
				map[string]int32{"a": 1, "b": 1}, "", map[string]int64{"b": 50},
				"1 replica stays where it runs; 1 replica divided by the room that is left: b 1 (room 50 of 50)",
			},
		},
		"fewer go by what runs": {
			3, []spot{{"a", 0, 4, 0}, {"b", 90, 2, 0}, {"c", 90, 0, 0}}, false,
			outcome{map[string]int32{"a": 2, "b": 1}, "", map[string]int64{"a": 4, "b": 2}, "3 replicas divided by what each cluster runs: a 2 (runs 4 of 6), b 1 (runs 2 of 6)"},
		},
		"afresh, all goes by all that fits": {
			3, []spot{{"a", 1, 1, 0}, {"b", 4, 0, 0}}, true,
			outcome{map[string]int32{"a": 1, "b": 2}, "", map[string]int64{"a": 2, "b": 4}, "3 replicas divided by room, whoever runs them now: b 2 (room 4 of 6), a 1 (room 2 of 6)"},
		},
		"all that fits is enough": {
			5, []spot{{"a", 2, 0, 0}, {"b", 3, 0, 0}}, false,
			outcome{map[string]int32{"a": 2, "b": 3}, "", map[string]int64{"a": 2, "b": 3}, "5 replicas divided by the room that is left: b 3 (room 3 of 5), a 2 (room 2 of 5)"},
		},
		"more than fits": {
			6, []spot{{"a", 2, 0, 0}, {"b", 3, 0, 0}}, false,
			outcome{Error: "Clusters available replicas 5 are not enough to schedule."},
		},
		"more on top than fits": {
			6, []spot{{"a", 1, 2, 0}, {"b", 2, 0, 0}}, false,
			outcome{Error: "Clusters available replicas 3 are not enough to schedule.", Words: "2 replicas stay where they run"},
		},
		"more than fits afresh": {
			6, []spot{{"a", 1, 2, 0}, {"b", 2, 0, 0}}, true,
			outcome{Error: "Clusters available replicas 5 are not enough to schedule."},
		},
		"none that is asked for": {
			0, []spot{{"a", 1, 2, 0}}, false,
			outcome{nil, "", map[string]int64{"a": 2}, "0 replicas divided by what each cluster runs: a 0 (runs 2 of 2)"},
		},
		"no cluster": {1, nil, false, outcome{Error: "Clusters available replicas 0 are not enough to schedule."}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := replicas.Input{Desired: tc.desired, Candidates: candidates(tc.spots), Fresh: tc.fresh}
			if diff := cmp.Diff(tc.want, assign(t, in, byCapacity)); diff != "" {
				t.Errorf("division (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAggregate: as few clusters as will do get replicas, first those that run
// some, then those with the most capacity.
func TestAggregate(t *testing.T) {
	cases := map[string]struct {
		desired int32
		spots   []spot
		fresh   bool
		want    outcome
	}{
		"the one with the most room": {
			5, []spot{{"a", 5, 0, 0}, {"b", 9, 0, 0}, {"c", 8, 0, 0}}, false,
			outcome{map[string]int32{"b": 5}, "", map[string]int64{"b": 9}, "5 replicas divided by the room that is left: b 5 (room 9 of 9)"},
		},
		"as many as it takes": {
			10, []spot{{"a", 5, 0, 0}, {"b", 9, 0, 0}, {"c", 6, 0, 0}}, false,
			outcome{map[string]int32{"b": 6, "c": 4}, "", map[string]int64{"b": 9, "c": 6}, "10 replicas divided by the room that is left: b 6 (room 9 of 15), c 4 (room 6 of 15)"},
		},
		"the first by name of those with as much room": {
			5, []spot{{"c", 9, 0, 0}, {"a", 9, 0, 0}, {"b", 9, 0, 0}}, false,
			outcome{map[string]int32{"a": 5}, "", map[string]int64{"a": 9}, "5 replicas divided by the room that is left: a 5 (room 9 of 9)"},
		},
		"those that run some come first": {
			5, []spot{{"a", 90, 0, 0}, {"b", 3, 2, 0}}, false,
			outcome{
				map[string]int32{"b": 5}, "", map[string]int64{"b": 3},
				"2 replicas stay where they run; 3 replicas divided by the room that is left: b 3 (room 3 of 3)",
			},
		},
		"fewer stay together": {
			2, []spot{{"a", 0, 1, 0}, {"b", 0, 3, 0}, {"c", 99, 0, 0}}, false,
			outcome{map[string]int32{"b": 2}, "", map[string]int64{"b": 3}, "2 replicas divided by what each cluster runs: b 2 (runs 3 of 3)"},
		},
		"afresh, too, those that run some come first": {
			2, []spot{{"a", 90, 0, 0}, {"b", 1, 1, 0}}, true,
			outcome{map[string]int32{"b": 2}, "", map[string]int64{"b": 2}, "2 replicas divided by room, whoever runs them now: b 2 (room 2 of 2)"},
		},
		"more than fits": {
			9, []spot{{"a", 4, 0, 0}, {"b", 4, 0, 0}}, false,
			outcome{Error: "Clusters available replicas 8 are not enough to schedule."},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := replicas.Input{Desired: tc.desired, Candidates: candidates(tc.spots), Fresh: tc.fresh}
			if diff := cmp.Diff(tc.want, assign(t, in, aggregated)); diff != "" {
				t.Errorf("division (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTiers: an affinity is filled as far as its capacity goes, and what is left goes
// to its overflow affinities, one after the other.
func TestTiers(t *testing.T) {
	cases := map[string]struct {
		desired int32
		spots   []spot
		want    outcome
	}{
		"nothing overflows": {
			2, []spot{{"over", 9, 0, 1}, {"a", 3, 0, 0}},
			outcome{map[string]int32{"a": 2}, "", map[string]int64{"a": 3}, "the affinity itself: 2 replicas divided by the room that is left: a 2 (room 3 of 3)"},
		},
		"what does not fit overflows": {
			5, []spot{{"over", 9, 0, 1}, {"a", 3, 0, 0}},
			outcome{
				map[string]int32{"a": 3, "over": 2}, "", map[string]int64{"a": 3, "over": 9},
				"the affinity itself: 3 replicas divided by the room that is left: a 3 (room 3 of 3); " +
					"overflow 1: 2 replicas divided by the room that is left: over 2 (room 9 of 9)",
			},
		},
		"a tier that is full, or has no cluster, is passed over": {
			5, []spot{{"a", 0, 0, 0}, {"b", 9, 0, 3}, {"c", 0, 0, 1}},
			outcome{map[string]int32{"b": 5}, "", map[string]int64{"b": 9}, "overflow 3: 5 replicas divided by the room that is left: b 5 (room 9 of 9)"},
		},
		"what runs stays where there is as much to do": {
			4, []spot{{"a", 1, 2, 0}, {"b", 9, 2, 1}},
			outcome{
				map[string]int32{"a": 3, "b": 1}, "", map[string]int64{"a": 1, "b": 2},
				"the affinity itself: 2 replicas stay where they run; the affinity itself: 1 replica divided by the room that is left: a 1 (room 1 of 1); " +
					"overflow 1: 1 replica divided by what each cluster runs: b 1 (runs 2 of 2)",
			},
		},
		"more than fits into all": {
			10, []spot{{"a", 3, 2, 0}, {"b", 4, 0, 1}},
			outcome{
				nil, "Clusters available replicas 9 are not enough to schedule.", map[string]int64{"a": 3, "b": 4},
				"the affinity itself: 2 replicas stay where they run; the affinity itself: 3 replicas divided by the room that is left: a 3 (room 3 of 3); " +
					"overflow 1: 4 replicas divided by the room that is left: b 4 (room 4 of 4)",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := replicas.Input{Desired: tc.desired, Candidates: candidates(tc.spots)}
			for _, s := range []*policyv1alpha1.ReplicaSchedulingStrategy{byCapacity, aggregated} {
				if diff := cmp.Diff(tc.want, assign(t, in, s)); diff != "" {
					t.Errorf("division, %s (-want +got):\n%s", s.ReplicaDivisionPreference, diff)
				}
			}
		})
	}
}

// TestShortageMayPass: that there is no capacity is an error of the kind that a later
// try may not meet.
func TestShortageMayPass(t *testing.T) {
	_, err := replicas.Assign(replicas.Input{Desired: 2, Candidates: candidates([]spot{{"a", 1, 0, 0}})}, byCapacity)
	want := &framework.UnschedulableError{Message: "Clusters available replicas 1 are not enough to schedule."}
	var got *framework.UnschedulableError
	if !errors.As(err, &got) {
		t.Fatalf("error = %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// TestStrategies: what is asked of a strategy follows from its fields, and one
// that is not known is refused by name.
func TestStrategies(t *testing.T) {
	type answers struct {
		Duplicates, Static, Overflows bool
		Error                         string
	}
	odd := divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, &policyv1alpha1.ClusterPreferences{DynamicWeight: "Mood"})
	cases := map[string]struct {
		strategy *policyv1alpha1.ReplicaSchedulingStrategy
		want     answers
	}{
		"none":                              {nil, answers{Duplicates: true}},
		"duplicated":                        {duplicated, answers{Duplicates: true}},
		"divided by no weights":             {evenly, answers{Static: true}},
		"divided by fixed weights":          {weighted(weight(1, "a")), answers{Static: true}},
		"divided by room":                   {byCapacity, answers{Overflows: true}},
		"divided among few":                 {aggregated, answers{Overflows: true}},
		"divided by what nobody knows":      {odd, answers{Overflows: true, Error: `unsupported replica scheduling strategy: type "Divided", division preference "Weighted"`}},
		"divided in a way that nobody does": {divided("Fairly", nil), answers{Overflows: true, Error: `unsupported replica scheduling strategy: type "Divided", division preference "Fairly"`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := answers{Duplicates: replicas.Duplicates(tc.strategy), Static: replicas.Static(tc.strategy), Overflows: replicas.Overflows(tc.strategy)}
			_, err := replicas.Assign(replicas.Input{Desired: 1, Candidates: candidates([]spot{{"a", 1, 0, 0}})}, tc.strategy)
			if err != nil {
				got.Error = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTraceNamesTen: a step names ten clusters, those that got the most, and
// counts the rest; weights that exceed any sum do not overflow it.
func TestTraceNamesTen(t *testing.T) {
	const most = 1<<63 - 1
	var spots []spot
	want := outcome{Targets: map[string]int32{}, Weights: map[string]int64{}}
	for i := range 12 {
		name := string(rune('a' + i))
		spots = append(spots, spot{name: name, capacity: 100})
		want.Targets[name], want.Weights[name] = 1, 100
	}
	want.Words = "12 replicas divided by the room that is left: a 1 (room 100 of 1200)"
	for i := range 9 {
		want.Words += ", " + string(rune('b'+i)) + " 1 (room 100 of 1200)"
	}
	want.Words += ", and 2 more"
	in := replicas.Input{Desired: 12, Candidates: candidates(spots)}
	if diff := cmp.Diff(want, assign(t, in, byCapacity)); diff != "" {
		t.Errorf("division (-want +got):\n%s", diff)
	}
	want = outcome{
		map[string]int32{"a": 1, "b": 1}, "", map[string]int64{"a": most, "b": most},
		"2 replicas divided by fixed weights: a 1 (weight 9223372036854775807 of 9223372036854775807), b 1 (weight 9223372036854775807 of 9223372036854775807)",
	}
	in = replicas.Input{Desired: 2, Candidates: candidates(spots[:2])}
	if diff := cmp.Diff(want, assign(t, in, weighted(weight(most)))); diff != "" {
		t.Errorf("division by weights beyond reason (-want +got):\n%s", diff)
	}
}
