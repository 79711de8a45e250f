package profile

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
)

// world returns a cluster at random, and the same in which each node and quota has so much less free as
// a profile may lose at most where it is not too long.
func world(r *rand.Rand) (exact, least *nodes.Index) {
	exact, least = &nodes.Index{}, &nodes.Index{}
	lose := func(a nodes.Amounts) nodes.Amounts {
		out := make(nodes.Amounts, len(a))
		for i, of := range a {
			step := map[corev1.ResourceName]int64{"cpu": leastCPU, "memory": leastBytes}[of.Name]
			out[i] = nodes.AmountOf{Name: of.Name, N: of.N - max(step, of.N/finest)}
			if step == 0 && of.N < 2*finest { // of what is few, nothing
				out[i].N = of.N
			}
		}
		return out
	}
	for i := range r.IntN(40) {
		n := &nodes.Node{Name: fmt.Sprintf("n%02d", i), Labels: map[string]string{corev1.LabelHostname: fmt.Sprint(i), "zone": fmt.Sprint(r.IntN(3))}}
		if r.IntN(4) == 0 {
			tainted(fmt.Sprint(r.IntN(2)))(i, n)
		}
		n.Allocatable = nodes.AmountsOf(list("cpu", fmt.Sprint(r.IntN(20000), "m"), "memory", fmt.Sprint(r.IntN(1<<16), "Mi"), "pods", fmt.Sprint(r.IntN(120)), "nvidia.com/gpu", fmt.Sprint(r.IntN(9))))
		exact.Node(n.Name, n)
		l := *n
		l.Allocatable = lose(n.Allocatable)
		least.Node(n.Name, &l)
	}
	for i := range r.IntN(3) {
		q := quotaOf("cpu", fmt.Sprint(r.IntN(100000), "m"), "memory", fmt.Sprint(r.IntN(1<<18), "Mi"))
		exact.Quota("shop", fmt.Sprint(i), q)
		least.Quota("shop", fmt.Sprint(i), &nodes.Quota{Free: lose(q.Free)})
	}
	return exact, least
}

func anyAsk(t *testing.T, r *rand.Rand) *nodes.Ask {
	need := needs("cpu", fmt.Sprint(r.IntN(8000), "m"), "memory", fmt.Sprint(r.IntN(1<<14), "Mi"))
	if r.IntN(4) == 0 {
		need.ResourceRequest = list("cpu", "100m", "nvidia.com/gpu", fmt.Sprint(r.IntN(5)))
	}
	need.NodeClaim = &workv1alpha2.NodeClaim{}
	if r.IntN(2) == 0 {
		need.NodeClaim.NodeSelector = map[string]string{"zone": fmt.Sprint(r.IntN(3))}
	}
	if r.IntN(2) == 0 {
		need.NodeClaim.Tolerations = []corev1.Toleration{{Key: fmt.Sprint(r.IntN(2)), Operator: corev1.TolerationOpExists}}
	}
	ask, err := nodes.AskForReplicas(need, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ask
}

// TestNeverMoreThanThereIs compares what fits by a profile with what fits by the nodes
// themselves, and with what is left of that where each of them has one part in sixteen less.
func TestNeverMoreThanThereIs(t *testing.T) {
	count := func(x *nodes.Index, ask *nodes.Ask) int32 {
		return nodes.Most(x, ask, nodes.Resources{}, nodes.Quotas{})
	}
	some := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		x, least := world(r)
		reported := within(x, MostBytes).Index()
		short := within(x, 400+r.IntN(2000))
		shortly := short.Index()
		for range 20 {
			ask := anyAsk(t, r)
			exact, got := count(x, ask), count(reported, ask)
			if got > exact || got < count(least, ask) {
				t.Fatalf("seed %d: %d fit by the profile, %d by the nodes, and %d if each had a little less", seed, got, exact, count(least, ask))
			}
			if short.Answers(ask) != nil {
				continue
			}
			if got := count(shortly, ask); got > exact {
				t.Fatalf("seed %d: %d fit by the short profile, %d by the nodes", seed, got, exact)
			} else if got > 0 {
				some++
			}
		}
	}
	if some < 1000 {
		t.Errorf("short profiles had room %d times only", some)
	}
}

// BenchmarkOf draws a cluster of 5,000 nodes that all differ.
func BenchmarkOf(b *testing.B) {
	r, x := rand.New(rand.NewPCG(1, 1)), &nodes.Index{}
	add(x, "n", 5000, nil, func(i int, n *nodes.Node) {
		n.Allocatable = nodes.AmountsOf(list("cpu", fmt.Sprint(r.IntN(64000), "m"), "memory", fmt.Sprint(r.IntN(1<<17), "Mi"), "pods", fmt.Sprint(r.IntN(110))))
		for j := range 15 {
			n.Labels[fmt.Sprint("label-", j)] = fmt.Sprint(i % (1 + j/3))
		}
	})
	for b.Loop() {
		p := Of(x)
		b.ReportMetric(float64(len(p.Encode())), "bytes")
		b.ReportMetric(float64(p.Nodes()), "nodes")
	}
}

// BenchmarkIndex makes what is asked of it.
func BenchmarkIndex(b *testing.B) {
	x := &nodes.Index{}
	add(x, "n", 5000, list("cpu", "4", "memory", "8Gi", "pods", "110"), labelled("rack", func(i int) string { return fmt.Sprint(i % 50) }))
	text := Of(x).Encode()
	for b.Loop() {
		p, err := Decode(text)
		if err != nil {
			b.Fatal(err)
		}
		p.Index()
	}
}
