package nodes

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func node(name, cpu, pods string, edits ...func(*Node)) *Node {
	n := &Node{Name: name, Labels: map[string]string{"name": name}, Allocatable: AmountsOf(list("cpu", cpu, "pods", pods))}
	for _, edit := range edits {
		edit(n)
	}
	return n
}

func tainted(key string, effect corev1.TaintEffect) func(*Node) {
	return func(n *Node) {
		n.Taints = TaintsOf(&corev1.NodeSpec{Taints: []corev1.Taint{{Key: key, Effect: effect}}})
	}
}

func cordoned(n *Node) { n.Taints = TaintsOf(&corev1.NodeSpec{Unschedulable: true}) }

func pod(on, cpu string) *Pod {
	return &Pod{Namespace: "shop", Name: on + cpu, Node: on, Requests: AmountsOf(list("cpu", cpu))}
}

func indexOf(nodes []*Node, pods ...*Pod) *Index {
	x := &Index{}
	for _, n := range nodes {
		x.Node(n.Name, n)
	}
	for _, p := range pods {
		x.Pod(nil, p)
	}
	return x
}

func needs(pairs ...string) *workv1alpha2.ReplicaRequirements {
	return &workv1alpha2.ReplicaRequirements{Namespace: "shop", ResourceRequest: list(pairs...)}
}

func claims(c workv1alpha2.NodeClaim) *workv1alpha2.ReplicaRequirements {
	return &workv1alpha2.ReplicaRequirements{Namespace: "shop", NodeClaim: &c, ResourceRequest: list("cpu", "1")}
}

func component(replicas int32, pairs ...string) workv1alpha2.Component {
	return workv1alpha2.Component{Replicas: replicas, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: list(pairs...)}}
}

func TestReplicasFitOnSingleNodes(t *testing.T) {
	two := []*Node{node("a", "4", "10"), node("b", "3", "10")}
	zone := func(n *Node) { n.Labels = map[string]string{"zone": "z1"} }
	affinity := func(values ...string) *corev1.NodeSelector {
		return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "name", Operator: corev1.NodeSelectorOpIn, Values: values}}}}}
	}
	tolerates := func(key string) []corev1.Toleration {
		return []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists}}
	}
	cases := map[string]struct {
		index *Index
		need  *workv1alpha2.ReplicaRequirements
		asm   []estimate.Assumed
		want  int32
	}{
		"nothing is known of a cluster without nodes":                      {index: &Index{}, need: needs("cpu", "1"), want: 0},
		"what is left on one node is not added to what is left on another": {index: indexOf(two), need: needs("cpu", "2"), want: 3},
		"pods take what they ask for":                                      {index: indexOf(two, pod("a", "3")), need: needs("cpu", "2"), want: 1},
		"pods that are over take nothing":                                  {index: indexOf(two, &Pod{Name: "p", Node: "a", Over: true, Requests: AmountsOf(list("cpu", "4"))}), need: needs("cpu", "2"), want: 3},
		"pods without a node take nothing":                                 {index: indexOf(two, pod("", "3")), need: needs("cpu", "2"), want: 3},
		"places for pods are counted by node":                              {index: indexOf([]*Node{node("a", "9", "2"), node("b", "9", "2")}, pod("a", "1")), need: needs("cpu", "1"), want: 3},
		"without requirements a replica is a pod":                          {index: indexOf(two, pod("a", "1")), need: nil, want: 19},
		"a node that holds more than it has takes none":                    {index: indexOf(two, pod("a", "9")), need: needs("cpu", "1"), want: 3},
		"a resource that no node has":                                      {index: indexOf(two), need: needs("gpu.example.com/a", "1"), want: 0},
		"a request of nothing is none":                                     {index: indexOf(two), need: needs("cpu", "1", "gpu.example.com/a", "0"), want: 7},
		"a taint that is not tolerated":                                    {index: indexOf([]*Node{node("a", "4", "9", tainted("k", corev1.TaintEffectNoSchedule)), node("b", "3", "9")}), need: needs("cpu", "1"), want: 3},
		"a taint that is a preference":                                     {index: indexOf([]*Node{node("a", "4", "9", tainted("k", corev1.TaintEffectPreferNoSchedule))}), need: needs("cpu", "1"), want: 4},
		"a taint that is tolerated":                                        {index: indexOf([]*Node{node("a", "4", "9", tainted("k", corev1.TaintEffectNoExecute))}), need: claims(workv1alpha2.NodeClaim{Tolerations: tolerates("k")}), want: 4},
		"a cordoned node":                                                  {index: indexOf([]*Node{node("a", "4", "9", cordoned), node("b", "3", "9")}), need: needs("cpu", "1"), want: 3},
		"a cordoned node for those that tolerate it":                       {index: indexOf([]*Node{node("a", "4", "9", cordoned)}), need: claims(workv1alpha2.NodeClaim{Tolerations: tolerates(corev1.TaintNodeUnschedulable)}), want: 4},
		"a node selector":                                                  {index: indexOf([]*Node{node("a", "4", "9", zone), node("b", "3", "9")}), need: claims(workv1alpha2.NodeClaim{NodeSelector: map[string]string{"zone": "z1"}}), want: 4},
		"a node affinity":                                                  {index: indexOf(two), need: claims(workv1alpha2.NodeClaim{HardNodeAffinity: affinity("b", "c")}), want: 3},
		"no node matches":                                                  {index: indexOf(two), need: claims(workv1alpha2.NodeClaim{HardNodeAffinity: affinity("c")}), want: 0},
		"what is assumed takes the first nodes":                            {index: indexOf(two), need: needs("cpu", "2"), asm: []estimate.Assumed{{Components: []workv1alpha2.Component{component(2, "cpu", "2")}}}, want: 1},
		"what is assumed and fits nowhere takes what it finds":             {index: indexOf(two), need: needs("cpu", "1"), asm: []estimate.Assumed{{Components: []workv1alpha2.Component{component(100, "cpu", "3")}}}, want: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ask, err := AskForReplicas(tc.need, tc.asm)
			if err != nil {
				t.Fatal(err)
			}
			if got := Most(tc.index, ask, Resources{}); got != tc.want {
				t.Errorf("%d replicas fit, want %d", got, tc.want)
			}
		})
	}
	if _, err := AskForReplicas(claims(workv1alpha2.NodeClaim{HardNodeAffinity: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a", Operator: "Near"}}}}}}), nil); err == nil {
		t.Error("an affinity that makes no sense was understood")
	}
}

func TestSetsFitAsWholes(t *testing.T) {
	set := []workv1alpha2.Component{component(1, "cpu", "2"), component(2, "cpu", "1")}
	cases := map[string]struct {
		nodes []*Node
		set   []workv1alpha2.Component
		want  int32
	}{
		"two sets fill two nodes":           {nodes: []*Node{node("a", "4", "9"), node("b", "4", "9")}, set: set, want: 2},
		"a part without room keeps all out": {nodes: []*Node{node("a", "1", "9"), node("b", "1", "9")}, set: set, want: 0},
		"half a set is none":                {nodes: []*Node{node("a", "7", "9")}, set: set, want: 1},
		"a set of one part":                 {nodes: []*Node{node("a", "7", "9")}, set: []workv1alpha2.Component{component(3, "cpu", "1")}, want: 2},
		"a set of nothing is not bounded":   {nodes: nil, set: []workv1alpha2.Component{component(0, "cpu", "1")}, want: math.MaxInt32},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ask, err := AskForSets("shop", tc.set, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := Most(indexOf(tc.nodes), ask, Resources{}); got != tc.want {
				t.Errorf("%d sets fit, want %d", got, tc.want)
			}
		})
	}
}

func TestOthersMayBoundNodes(t *testing.T) {
	apart := Resources{Limits: []NodeLimit{func(*Node, *Part) int64 { return 1 }}} // as anti-affinity between all replicas
	ask, _ := AskForReplicas(needs("cpu", "1"), nil)
	if got := Most(indexOf([]*Node{node("a", "4", "9"), node("b", "4", "9"), node("c", "0", "9")}), ask, apart); got != 2 {
		t.Errorf("%d replicas fit, want one on each of 2 nodes", got)
	}
}

func TestQuotasBound(t *testing.T) {
	quota := func(hard, used corev1.ResourceList, edits ...func(*corev1.ResourceQuota)) *corev1.ResourceQuota {
		q := &corev1.ResourceQuota{Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used}}
		for _, edit := range edits {
			edit(q)
		}
		return q
	}
	selects := func(op corev1.ScopeSelectorOperator, values ...string) func(*corev1.ResourceQuota) {
		return func(q *corev1.ResourceQuota) {
			if q.Spec.ScopeSelector == nil {
				q.Spec.ScopeSelector = &corev1.ScopeSelector{}
			}
			q.Spec.ScopeSelector.MatchExpressions = append(q.Spec.ScopeSelector.MatchExpressions, corev1.ScopedResourceSelectorRequirement{
				ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: op, Values: values,
			})
		}
	}
	tight := func(edits ...func(*corev1.ResourceQuota)) []*corev1.ResourceQuota {
		return []*corev1.ResourceQuota{quota(list("cpu", "2"), list("cpu", "1500m"), edits...)}
	}
	foreign := func(q *corev1.ResourceQuota) {
		q.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeBestEffort}
	}
	const unbounded = math.MaxInt32
	cases := map[string]struct {
		quotas []*corev1.ResourceQuota
		need   *workv1alpha2.ReplicaRequirements
		class  string
		asm    []estimate.Assumed
		want   int32
	}{
		"no quota":                 {need: needs("cpu", "1"), want: unbounded},
		"hard less used":           {quotas: tight(), need: needs("cpu", "200m"), want: 2},
		"more is used than may be": {quotas: []*corev1.ResourceQuota{quota(list("cpu", "1"), list("cpu", "2"))}, need: needs("cpu", "1"), want: 0},
		"the smallest of several":  {quotas: append(tight(), quota(list("memory", "1Gi"), list("memory", "0"))), need: needs("cpu", "100m", "memory", "1Gi"), want: 1},
		"requests. is the same resource, the less wins": {quotas: []*corev1.ResourceQuota{quota(list("cpu", "9", "requests.cpu", "3"), list("cpu", "0", "requests.cpu", "0"))}, need: needs("cpu", "1"), want: 3},
		"what is not counted there":                     {quotas: []*corev1.ResourceQuota{quota(list("cpu", "1"), nil)}, need: needs("cpu", "1"), want: unbounded},
		"an extended resource":                          {quotas: []*corev1.ResourceQuota{quota(list("requests.example.com/gpu", "3"), list("requests.example.com/gpu", "1"))}, need: needs("example.com/gpu", "1"), want: 2},
		"limits, storage, pods and counts are no matter": {quotas: []*corev1.ResourceQuota{quota(
			list("limits.cpu", "0", "requests.storage", "0", "ephemeral-storage", "0", "pods", "0", "count/pods", "0", "gold.storageclass.storage.k8s.io/requests.storage", "0"),
			list("limits.cpu", "0", "requests.storage", "0", "ephemeral-storage", "0", "pods", "0", "count/pods", "0", "gold.storageclass.storage.k8s.io/requests.storage", "0"))},
			need: needs("cpu", "1", "ephemeral-storage", "1Gi"), want: unbounded},
		"a class that a scope means":       {quotas: tight(selects(corev1.ScopeSelectorOpIn, "gold")), need: needs("cpu", "500m"), class: "gold", want: 1},
		"a class that it does not":         {quotas: tight(selects(corev1.ScopeSelectorOpIn, "gold")), need: needs("cpu", "500m"), class: "tin", want: unbounded},
		"any class":                        {quotas: tight(selects(corev1.ScopeSelectorOpExists)), need: needs("cpu", "500m"), class: "tin", want: 1},
		"any class, and there is none":     {quotas: tight(selects(corev1.ScopeSelectorOpExists)), need: needs("cpu", "500m"), want: unbounded},
		"no class":                         {quotas: tight(selects(corev1.ScopeSelectorOpDoesNotExist)), need: needs("cpu", "500m"), want: 1},
		"not that class":                   {quotas: tight(selects(corev1.ScopeSelectorOpNotIn, "gold")), need: needs("cpu", "500m"), class: "tin", want: 1},
		"one of several scopes is enough":  {quotas: tight(selects(corev1.ScopeSelectorOpIn, "a"), selects(corev1.ScopeSelectorOpIn, "gold")), need: needs("cpu", "500m"), class: "gold", want: 1},
		"another scope makes it no matter": {quotas: tight(foreign), need: needs("cpu", "500m"), class: "gold", want: unbounded},
		"what is assumed there takes of it": {quotas: []*corev1.ResourceQuota{quota(list("cpu", "1"), list("cpu", "0"))}, need: needs("cpu", "150m"),
			asm: []estimate.Assumed{{Namespace: "shop", Components: []workv1alpha2.Component{component(6, "cpu", "150m")}}}, want: 0},
		"what is assumed elsewhere does not": {quotas: []*corev1.ResourceQuota{quota(list("cpu", "1"), list("cpu", "0"))}, need: needs("cpu", "150m"),
			asm: []estimate.Assumed{{Namespace: "depot", Components: []workv1alpha2.Component{component(6, "cpu", "150m")}}}, want: 6},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			x := &Index{}
			for i, q := range tc.quotas {
				x.Quota("shop", fmt.Sprint(i), QuotaOf(q))
			}
			tc.need.PriorityClassName = tc.class
			ask, err := AskForReplicas(tc.need, tc.asm)
			if err != nil {
				t.Fatal(err)
			}
			if got := Most(x, ask, Quotas{}); got != tc.want {
				t.Errorf("%d replicas fit, want %d", got, tc.want)
			}
			for i := range tc.quotas {
				x.Quota("shop", fmt.Sprint(i), nil)
			}
			if got := Most(x, ask, Quotas{}); got != unbounded {
				t.Errorf("%d replicas fit once the quotas are gone", got)
			}
		})
	}
}

func TestPodsWaitInVain(t *testing.T) {
	now := time.Unix(10_000, 0)
	waits := func(name, set string, since time.Duration, created int64) *Pod {
		return &Pod{Namespace: "shop", Name: name, Owner: Owner{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set, Template: "h" + set[len(set)-1:]}, Waits: now.Add(-since), Created: time.Unix(created, 0)}
	}
	of := func(apiVersion, kind, name string) workv1alpha2.ObjectReference {
		return workv1alpha2.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: "shop", Name: name}
	}
	x := indexOf(nil,
		waits("a", "web-h1", time.Hour, 1), waits("b", "web-h2", time.Hour, 2), waits("c", "web-h2", 5*time.Minute, 3), waits("d", "web-h2", time.Minute, 3),
		waits("e", "other-h1", time.Hour, 9),
		&Pod{Namespace: "shop", Name: "f", Owner: Owner{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"}, Waits: now.Add(-time.Hour)},
		&Pod{Namespace: "depot", Name: "f", Owner: Owner{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"}, Waits: now.Add(-time.Hour)},
	)
	got := map[string]int32{}
	for name, ref := range map[string]workv1alpha2.ObjectReference{
		"of the latest ReplicaSet, for long enough": of("apps/v1", "Deployment", "web"),
		"of a kind that makes ReplicaSets, too":     of("argoproj.io/v1alpha1", "Rollout", "other"),
		"of what controls its pods":                 of("apps/v1", "StatefulSet", "db"),
		"of another kind of the same name":          of("apps/v1", "DaemonSet", "db"),
		"of what is not there":                      of("apps/v1", "Deployment", "no"),
	} {
		got[name] = x.Unschedulable(ref, 5*time.Minute, now)
	}
	want := map[string]int32{
		"of the latest ReplicaSet, for long enough": 2, "of a kind that makes ReplicaSets, too": 1,
		"of what controls its pods": 1, "of another kind of the same name": 0, "of what is not there": 0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pods that wait (-want +got):\n%s", diff)
	}
	back := []*Pod{waits("g", "web-h1", time.Hour, 4), waits("h", "web-h1", time.Hour, 4)}
	for _, p := range back {
		x.Pod(nil, p)
	}
	if got := x.Unschedulable(of("apps/v1", "Deployment", "web"), 5*time.Minute, now); got != 3 {
		t.Errorf("%d wait once it was rolled back to the ReplicaSet that was made first, want the 3 of that", got)
	}
	for _, p := range back {
		x.Pod(p, nil)
	}
	was := waits("b", "web-h2", time.Hour, 2)
	bound := *was
	bound.Node, bound.Waits = "n1", time.Time{}
	x.Pod(was, &bound)
	if got := x.Unschedulable(of("apps/v1", "Deployment", "web"), 5*time.Minute, now); got != 1 {
		t.Errorf("%d wait once one has found a node, want 1", got)
	}
}

// TestWhatAnIndexKnowsIsReported goes through the nodes and quotas of an index.
func TestWhatAnIndexKnowsIsReported(t *testing.T) {
	over := pod("b", "9")
	x := indexOf([]*Node{node("b", "4", "10"), node("a", "4", "10")}, pod("a", "1"), over, pod("unknown", "1"))
	quota := func(free ...string) *Quota { return &Quota{Free: AmountsOf(list(free...))} }
	x.Quota("shop", "second", quota("cpu", "2"))
	x.Quota("shop", "first", quota("cpu", "1"))
	x.Quota("books", "any", quota("memory", "5"))
	x.Quota("books", "of others", &Quota{Foreign: true, Free: AmountsOf(list("cpu", "1"))})
	x.Quota("books", "of nothing", &Quota{})
	var got []string
	for n, free := range x.Nodes() {
		got = append(got, fmt.Sprint(n.Name, free))
	}
	for namespace, q := range x.Quotas() {
		got = append(got, fmt.Sprint(namespace, q.Free))
	}
	want := []string{"a[{cpu 3000} {pods 9}]", "b[{cpu 0} {pods 9}]", "books[{memory 5}]", "shop[{cpu 1000}]", "shop[{cpu 2000}]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestByWhatNodesAreChosen(t *testing.T) {
	affinity := func(t corev1.NodeSelectorTerm) *workv1alpha2.NodeClaim {
		return &workv1alpha2.NodeClaim{NodeSelector: map[string]string{"zone": "a", "disk": "ssd"}, HardNodeAffinity: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{t}}}
	}
	exists := []corev1.NodeSelectorRequirement{{Key: "gpu", Operator: corev1.NodeSelectorOpExists}, {Key: "zone", Operator: corev1.NodeSelectorOpExists}}
	byName := []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}
	besides := component(1, "cpu", "1")
	besides.ReplicaRequirements.NodeClaim = &workv1alpha2.NodeClaim{NodeSelector: map[string]string{"rack": "1"}}
	cases := map[string]struct {
		claim   *workv1alpha2.NodeClaim
		assumed []estimate.Assumed
		want    string
	}{
		"by nothing":              {want: "[] false"},
		"by labels":               {claim: affinity(corev1.NodeSelectorTerm{MatchExpressions: exists}), want: "[disk gpu zone] false"},
		"by name":                 {claim: affinity(corev1.NodeSelectorTerm{MatchFields: byName}), want: "[disk zone] true"},
		"as what is assumed does": {assumed: []estimate.Assumed{{Components: []workv1alpha2.Component{besides}}}, want: "[rack] false"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ask, err := AskForReplicas(&workv1alpha2.ReplicaRequirements{NodeClaim: tc.claim}, tc.assumed)
			if err != nil {
				t.Fatal(err)
			}
			keys, named := ask.Chooses()
			if got := fmt.Sprint(keys, named); got != tc.want {
				t.Errorf("= %s, want %s", got, tc.want)
			}
		})
	}
}
