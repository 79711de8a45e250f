package placement_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// FuzzPlace holds for every strategy and every constraint: replicas add up,
// none is negative, the order of clusters does not matter, explaining says what
// placing does, placing what is placed changes nothing, and replicas that are
// added or taken away move no other.
func FuzzPlace(f *testing.F) {
	for i := range uint64(40) {
		f.Add(i, uint16(i*7), uint8(i+1), uint8(i))
	}
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, count, strategy uint8) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		clusters := randomClusters(rnd, int(count%40)+1)
		spec := deployment(int32(n%500)+1, policyv1alpha1.Placement{ReplicaScheduling: randomStrategy(rnd, strategy)})
		spec.Resource.UID = "u"
		spec.Placement.SpreadConstraints = randomConstraints(rnd)
		req := placement.Request{Spec: spec}
		got, err := placement.Place(req, placement.NewSnapshot(clusters), placement.Options{})
		agrees(t, req, placement.NewSnapshot(clusters), placement.Options{})
		rnd.Shuffle(len(clusters), func(i, j int) { clusters[i], clusters[j] = clusters[j], clusters[i] })
		again, againErr := placement.Place(req, placement.NewSnapshot(clusters), placement.Options{})
		if diff := cmp.Diff(got, again); diff != "" || text(err) != text(againErr) {
			t.Fatalf("the order of clusters matters: %v, %v\n%s", err, againErr, diff)
		}
		if err != nil {
			return
		}
		checkSum(t, spec, got.Clusters)
		spec.Clusters = got.Clusters
		snap := placement.NewSnapshot(occupied(clusters, got.Clusters))
		after, err := placement.Place(req, snap, placement.Options{})
		if diff := cmp.Diff(got.Clusters, after.Clusters); diff != "" || err != nil {
			t.Fatalf("placing twice is not placing once: %v (-first +second):\n%s", err, diff)
		}
		if s := spec.Placement.ReplicaScheduling; s == nil || s.WeightPreference != nil && s.WeightPreference.DynamicWeight == "" {
			return // all replicas everywhere, or weights that say where each belongs
		}
		scale(t, req, snap, rnd)
	})
}

// scale places one number of replicas after another; it takes none away to add
// others, and the other way round.
func scale(t *testing.T, req placement.Request, snap placement.Snapshot, rnd *rand.Rand) {
	t.Helper()
	was := *req.Spec
	for range 3 {
		spec := was
		spec.Replicas = max(was.Replicas+int32(rnd.IntN(81)-40), 1)
		req.Spec = &spec
		got, err := placement.Place(req, snap, placement.Options{})
		if err != nil {
			return // there is no more capacity
		}
		checkSum(t, &spec, got.Clusters)
		if onlyClusterLimit(spec.Placement) {
			return // clusters without capacity are exchanged, as they are in Karmada
		}
		for _, before := range was.Clusters {
			after := replicasOn(got.Clusters, before.Name)
			if spec.Replicas >= was.Replicas && after < before.Replicas && !limited(spec.Placement) {
				t.Fatalf("scaled from %d to %d, and %s went from %d to %d", was.Replicas, spec.Replicas, before.Name, before.Replicas, after)
			}
		}
		for _, now := range got.Clusters {
			if before := replicasOn(was.Clusters, now.Name); spec.Replicas <= was.Replicas && now.Replicas > before {
				t.Fatalf("scaled from %d to %d, and %s went from %d to %d", was.Replicas, spec.Replicas, now.Name, before, now.Replicas)
			}
		}
		was.Replicas, was.Clusters = spec.Replicas, got.Clusters
	}
}

// limited reports whether a maximum can make it impossible to stay.
func limited(p *policyv1alpha1.Placement) bool {
	return slices.ContainsFunc(p.SpreadConstraints, func(c policyv1alpha1.SpreadConstraint) bool { return c.MaxGroups > 0 })
}

func onlyClusterLimit(p *policyv1alpha1.Placement) bool {
	return limited(p) && !slices.ContainsFunc(p.SpreadConstraints, func(c policyv1alpha1.SpreadConstraint) bool {
		return c.SpreadByField != policyv1alpha1.SpreadByFieldCluster
	})
}

func replicasOn(targets []workv1alpha2.TargetCluster, name string) int32 {
	for _, t := range targets {
		if t.Name == name {
			return t.Replicas
		}
	}
	return 0
}

// agrees holds that an explanation says what happens.
func agrees(t *testing.T, req placement.Request, snap placement.Snapshot, opts placement.Options) {
	t.Helper()
	result, err := placement.Place(req, snap, opts)
	trace := placement.Explain(req, snap, opts)
	if diff := cmp.Diff(result, placement.Result{Clusters: trace.Clusters, AffinityName: trace.AffinityName}); diff != "" || text(err) != text(trace.Err) {
		t.Fatalf("placed and explained differ: %v, %v (-placed +explained)\n%s", err, trace.Err, diff)
	}
	last := trace.Terms[len(trace.Terms)-1]
	if (last.Err == nil) != (err == nil) {
		t.Fatalf("the last term says %v, the placement %v", last.Err, err)
	}
	var targets []workv1alpha2.TargetCluster
	for _, v := range last.Verdicts {
		if v.Refused != "" && (v.Selected || v.Replicas > 0) {
			t.Fatalf("%s was refused and chosen", v.Cluster)
		}
		if v.Replicas > 0 {
			targets = append(targets, on(v.Cluster, v.Replicas))
		}
	}
	placed := slices.DeleteFunc(slices.Clone(result.Clusters), func(t workv1alpha2.TargetCluster) bool { return t.Replicas == 0 })
	if diff := cmp.Diff(placed, targets); diff != "" && err == nil && len(placed)+len(targets) > 0 {
		t.Fatalf("replicas placed and explained differ (-placed +explained):\n%s", diff)
	}
}

func randomClusters(rnd *rand.Rand, n int) []*clusterv1alpha1.Cluster {
	out := make([]*clusterv1alpha1.Cluster, n)
	for i := range out {
		c := cluster(fmt.Sprintf("c%02d", i), int64(rnd.IntN(100)), region(string(rune('a'+rnd.IntN(4)))))
		c.Labels["rack"] = fmt.Sprint(rnd.IntN(3))
		c.Spec.Provider = []string{"", "acme", "other"}[rnd.IntN(3)]
		for range rnd.IntN(3) {
			c.Spec.Zones = append(c.Spec.Zones, fmt.Sprintf("z%d", rnd.IntN(5)))
		}
		out[i] = c
	}
	return out
}

func randomConstraints(rnd *rand.Rand) []policyv1alpha1.SpreadConstraint {
	if rnd.IntN(2) == 0 {
		return nil
	}
	var out []policyv1alpha1.SpreadConstraint
	for _, by := range []policyv1alpha1.SpreadFieldValue{"cluster", "region", "zone", "provider"} {
		if rnd.IntN(3) == 0 {
			out = append(out, policyv1alpha1.SpreadConstraint{SpreadByField: by, MinGroups: rnd.IntN(3), MaxGroups: rnd.IntN(6)})
		}
	}
	if rnd.IntN(4) == 0 {
		out = append(out, policyv1alpha1.SpreadConstraint{SpreadByLabel: "rack", MinGroups: rnd.IntN(3), MaxGroups: rnd.IntN(3)})
	}
	return out
}

func randomStrategy(rnd *rand.Rand, kind uint8) *policyv1alpha1.ReplicaSchedulingStrategy {
	switch kind % 4 {
	case 0:
		return nil
	case 1:
		weights := &policyv1alpha1.ClusterPreferences{}
		for i := range rnd.IntN(10) {
			weights.StaticWeightList = append(weights.StaticWeightList, policyv1alpha1.StaticClusterWeight{
				TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{fmt.Sprintf("c%02d", i)}}, Weight: rnd.Int64N(1 << 62),
			})
		}
		return divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, weights)
	case 2:
		return divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted,
			&policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas})
	default:
		return divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil)
	}
}

// occupied returns the clusters with the placement's pods counted.
func occupied(clusters []*clusterv1alpha1.Cluster, targets []workv1alpha2.TargetCluster) []*clusterv1alpha1.Cluster {
	out := make([]*clusterv1alpha1.Cluster, len(clusters))
	for i, c := range clusters {
		out[i] = c.DeepCopy()
		out[i].Status.ResourceSummary.Allocated = corev1.ResourceList{
			corev1.ResourcePods: *resource.NewQuantity(int64(replicasOn(targets, c.Name)), resource.DecimalSI),
		}
	}
	return out
}

func checkSum(t *testing.T, spec *workv1alpha2.ResourceBindingSpec, targets []workv1alpha2.TargetCluster) {
	t.Helper()
	var sum int64
	for _, target := range targets {
		if target.Replicas < 0 {
			t.Fatalf("negative replicas: %v", targets)
		}
		sum += int64(target.Replicas)
	}
	want := int64(spec.Replicas)
	if spec.Placement.ReplicaScheduling == nil {
		want *= int64(len(targets))
	}
	if sum != want {
		t.Fatalf("replicas add up to %d, want %d: %v", sum, want, targets)
	}
	if !slices.IsSortedFunc(targets, func(a, b workv1alpha2.TargetCluster) int { return strings.Compare(a.Name, b.Name) }) {
		t.Fatalf("clusters are not sorted: %v", targets)
	}
}

// FuzzAbsurd places what nobody should ask for on clusters that nobody should
// have. Whatever comes of it comes soon, twice the same, without a negative
// number, and explained as it is.
func FuzzAbsurd(f *testing.F) {
	f.Add(int32(math.MaxInt32), int64(math.MaxInt64), int64(1), "9e18", "1n", 5, 2, "In", uint8(1))
	f.Add(int32(math.MinInt32), int64(-1), int64(0), "-1", "0", -1, -9, "Near", uint8(2))
	f.Add(int32(0), int64(0), int64(0), "0", "1e40", 0, 0, "", uint8(3))
	f.Add(int32(7), int64(math.MinInt64), int64(math.MaxInt64), "1e40", "-1", math.MaxInt, math.MaxInt, "Gt", uint8(7))
	f.Add(int32(3), int64(3), int64(3), "3", "3", 3, 0, "Exists", uint8(9))
	f.Add(int32(math.MaxInt32), int64(1), int64(1), "9e18", "1", 1, 1, "NotIn", uint8(12))
	f.Fuzz(func(t *testing.T, n int32, weight, other int64, have, want string, least, most int, operator string, kind uint8) {
		free, err := resource.ParseQuantity(have)
		asked, err2 := resource.ParseQuantity(want)
		if err != nil || err2 != nil {
			t.Skip()
		}
		a := cluster("a", 5, region("eu"), func(c *clusterv1alpha1.Cluster) {
			c.Spec.Zones = []string{"z", "z", ""}
			c.Status.ResourceSummary.Allocatable[corev1.ResourcePods] = free
			c.Status.ResourceSummary.Allocatable[corev1.ResourceCPU] = free
			c.Status.ResourceSummary.AllocatableModelings = []clusterv1alpha1.AllocatableModeling{{Grade: uint(kind), Count: least}}
			c.Spec.ResourceModels = []clusterv1alpha1.ResourceModel{{Grade: 1, Ranges: []clusterv1alpha1.ResourceModelRange{{Name: "cpu", Min: free, Max: asked}}}}
		})
		odd := policyv1alpha1.ClusterAffinity{
			LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "name", Operator: metav1.LabelSelectorOperator(operator), Values: []string{"a"}}}},
			FieldSelector: &policyv1alpha1.FieldSelector{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: operator, Operator: corev1.NodeSelectorOperator(operator)}}},
		}
		p := policyv1alpha1.Placement{
			ClusterTolerations: []corev1.Toleration{{Operator: corev1.TolerationOperator(operator)}},
			ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, &policyv1alpha1.ClusterPreferences{StaticWeightList: []policyv1alpha1.StaticClusterWeight{
				{Weight: weight}, {TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}, Weight: other}, {TargetCluster: odd, Weight: 1},
			}}),
		}
		if kind%4 != 0 {
			p.ReplicaScheduling = randomStrategy(rand.New(rand.NewPCG(uint64(kind), 1)), kind)
		}
		if kind%3 == 0 {
			p.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{
				{AffinityName: "odd", ClusterAffinity: odd},
				{AffinityName: "a", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}, OverflowAffinities: []policyv1alpha1.OverflowAffinityTerm{{}}},
			}
		}
		if kind%5 != 0 {
			p.SpreadConstraints = []policyv1alpha1.SpreadConstraint{
				{SpreadByField: policyv1alpha1.SpreadFieldValue([]string{"zone", "region", "cluster", operator}[kind%4]), MinGroups: least, MaxGroups: most},
				{SpreadByLabel: "name", MinGroups: most, MaxGroups: least},
			}
		}
		spec := deployment(n, p, on("a", n), on("a", -n), on("gone", n))
		spec.ReplicaRequirements.ResourceRequest = corev1.ResourceList{corev1.ResourceCPU: asked, corev1.ResourcePods: asked}
		if kind%7 == 0 {
			spec.Components = []workv1alpha2.Component{{Name: "x", Replicas: n}, {Name: "y", Replicas: int32(least)}}
		}
		before := spec.DeepCopy()
		req := placement.Request{Spec: spec, Fresh: kind%2 == 0}
		snap := placement.NewSnapshot([]*clusterv1alpha1.Cluster{a, cluster("b", 3), cluster("c", 0, region("eu"))})
		agrees(t, req, snap, placement.Options{KeepEmpty: kind%2 == 1})
		got, err := placement.Place(req, snap, placement.Options{})
		for _, c := range got.Clusters {
			if c.Replicas < 0 {
				t.Errorf("%s runs %d", c.Name, c.Replicas)
			}
		}
		if err == nil && len(got.Clusters) == 0 && n > 0 {
			t.Error("placed nowhere, without an error")
		}
		if diff := cmp.Diff(before, spec); diff != "" {
			t.Errorf("the binding was changed (-before +after):\n%s", diff)
		}
	})
}
