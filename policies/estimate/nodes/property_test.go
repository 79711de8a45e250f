package nodes

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
)

// world is what an Index is compared with: all nodes and pods, counted one by one.
type world struct {
	nodes map[string]*Node
	pods  map[string]*Pod
}

// most counts the sets that fit by putting pod after pod on the first node that takes it.
func (w *world) most(ask *Ask) int32 {
	type left struct {
		*Node
		free map[string]int64
	}
	var all []left
	for _, n := range w.nodes {
		l := left{n, map[string]int64{}}
		for _, a := range n.Allocatable {
			l.free[string(a.Name)] = a.N
		}
		for _, p := range w.pods {
			if p.Node != n.Name || p.Over {
				continue
			}
			for _, a := range append(slices.Clone(p.Requests), onePod...) {
				l.free[string(a.Name)] -= a.N
			}
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b left) int { return rowCompare(row{name: a.Name}, b.Name) })
	one := func(p *Part) bool {
		for _, l := range all {
			ok := p.tolerates(l.Taints)
			for _, a := range append(slices.Clone(p.Requests), onePod...) {
				ok = ok && (a.N == 0 || l.free[string(a.Name)] >= a.N)
			}
			if ok {
				for _, a := range append(slices.Clone(p.Requests), onePod...) {
					l.free[string(a.Name)] -= a.N
				}
				return true
			}
		}
		return false
	}
	for i := range ask.Assumed {
		for range ask.Assumed[i].Pods {
			one(&ask.Assumed[i].Part)
		}
	}
	start := make([]map[string]int64, len(all))
	for i := range all {
		start[i] = all[i].free
	}
	for sets := int32(1); ; sets++ {
		for i := range all {
			all[i].free = map[string]int64{}
			for name, n := range start[i] {
				all[i].free[name] = n
			}
		}
		for i := range ask.Parts {
			for range ask.Parts[i].Pods * int64(sets) {
				if !one(&ask.Parts[i]) {
					return sets - 1
				}
			}
		}
	}
}

// TestCountsAsOneByOne changes nodes and pods at random and compares the index with a
// plain count.
func TestCountsAsOneByOne(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		x, w := &Index{}, &world{map[string]*Node{}, map[string]*Pod{}}
		for range 60 {
			change(r, x, w)
			if ask, err := AskForReplicas(needs("cpu", "1"), nil); err != nil || Most(x, ask, Resources{}) != w.most(ask) {
				t.Fatalf("seed %d: %d replicas fit, one by one %d", seed, Most(x, ask, Resources{}), w.most(ask))
			}
		}
		set := []workv1alpha2.Component{component(1+r.Int32N(2), "cpu", fmt.Sprint(1+r.IntN(3)), "memory", fmt.Sprint(r.IntN(4)))}
		if seed%2 == 0 {
			set = append(set, component(1+r.Int32N(3), "cpu", fmt.Sprint(1+r.IntN(2))))
		}
		assumed := []estimate.Assumed{{Components: []workv1alpha2.Component{component(r.Int32N(4), "cpu", fmt.Sprint(1+r.IntN(3)))}}}
		ask, err := AskForSets("shop", set, assumed)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := Most(x, ask, Resources{}), w.most(ask); got != want {
			t.Fatalf("seed %d: %d sets fit, one by one %d", seed, got, want)
		}
	}
}

// TestNothingIsLeftOfWhatIsGone takes all nodes and pods away again, in any order.
func TestNothingIsLeftOfWhatIsGone(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	x, w := &Index{}, &world{map[string]*Node{}, map[string]*Pod{}}
	for range 500 {
		change(r, x, w)
	}
	for _, p := range w.pods {
		x.Pod(p, nil)
	}
	for name := range w.nodes {
		x.Node(name, nil)
	}
	if len(x.rows) != 0 || len(x.free) != 0 || len(x.waiting) != 0 {
		t.Errorf("%d nodes, %d numbers and %d pods are left", len(x.rows), len(x.free), len(x.waiting))
	}
}

func change(r *rand.Rand, x *Index, w *world) {
	name := fmt.Sprint("n", r.IntN(6))
	if r.IntN(3) == 0 {
		var is *Node
		if r.IntN(4) > 0 {
			is = &Node{Name: name, Allocatable: AmountsOf(list("cpu", fmt.Sprint(r.IntN(8)), "memory", fmt.Sprint(r.IntN(9)), "pods", fmt.Sprint(r.IntN(12))))}
			if r.IntN(4) == 0 {
				tainted(fmt.Sprint(r.IntN(3)), "NoSchedule")(is)
			}
		}
		x.Node(name, is)
		if delete(w.nodes, name); is != nil {
			w.nodes[name] = is
		}
		return
	}
	key := fmt.Sprint("p", r.IntN(20))
	was := w.pods[key]
	var is *Pod
	if r.IntN(4) > 0 {
		is = &Pod{Namespace: "shop", Name: key, Node: []string{"", name}[min(r.IntN(5), 1)], Over: r.IntN(6) == 0, Requests: AmountsOf(list("cpu", fmt.Sprint(r.IntN(3)), "memory", fmt.Sprint(r.IntN(3))))}
	}
	x.Pod(was, is)
	if delete(w.pods, key); is != nil {
		w.pods[key] = is
	}
}

// large returns an index of so many nodes, with ten times as many pods on them.
func large(n int) (*Index, []*Pod) {
	x, pods := &Index{}, []*Pod{}
	for i := range n {
		name := fmt.Sprintf("node-%05d", i)
		is := &Node{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "topology.kubernetes.io/zone": fmt.Sprint("z", i%3)},
			Allocatable: AmountsOf(list("cpu", "16", "memory", "64Gi", "ephemeral-storage", "100Gi", "pods", "110"))}
		if i%50 == 0 {
			tainted("dedicated", "NoSchedule")(is)
		}
		x.Node(name, is)
	}
	for i := range 10 * n {
		p := &Pod{Namespace: "shop", Name: fmt.Sprint("pod-", i), Node: fmt.Sprintf("node-%05d", i%n), Requests: AmountsOf(list("cpu", fmt.Sprint(100*(1+i%13), "m"), "memory", fmt.Sprint(128*(1+i%7), "Mi")))}
		x.Pod(nil, p)
		pods = append(pods, p)
	}
	return x, pods
}

// BenchmarkReplicas asks a cluster of 5,000 nodes and 50,000 pods.
func BenchmarkReplicas(b *testing.B) {
	x, pods := large(5000)
	cases := map[string]struct {
		need    *workv1alpha2.ReplicaRequirements
		assumed []estimate.Assumed
	}{
		"any node":      {need: needs("cpu", "500m", "memory", "1Gi")},
		"node selector": {need: &workv1alpha2.ReplicaRequirements{ResourceRequest: list("cpu", "500m"), NodeClaim: &workv1alpha2.NodeClaim{NodeSelector: map[string]string{"topology.kubernetes.io/zone": "z1"}}}},
		"with assumed":  {need: needs("cpu", "500m", "memory", "1Gi"), assumed: []estimate.Assumed{{Namespace: "shop", Components: []workv1alpha2.Component{component(500, "cpu", "1")}}}},
	}
	for name, tc := range cases {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ask, err := AskForReplicas(tc.need, tc.assumed)
				if err != nil || Most(x, ask, Resources{}, Quotas{}) == 0 {
					b.Fatal("nothing fits")
				}
			}
		})
	}
	b.Run("change of a pod", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			x.Pod(pods[i%len(pods)], nil)
			x.Pod(nil, pods[i%len(pods)])
		}
	})
	runtime.KeepAlive(pods)
}
