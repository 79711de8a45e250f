package nodes_test

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
)

// apart is a plugin of somebody's own: anti-affinity by hostname. Pods of some namespaces run one to a node, and not where
// one is already, which whoever made it knows.
type apart struct {
	namespaces map[string]bool
	has        func(node string) bool
}

// Name implements nodes.Plugin.
func (apart) Name() string { return "HostnameApart" }

// Most implements nodes.Plugin.
func (p apart) Most(x *nodes.Index, ask *nodes.Ask) int64 {
	if !p.namespaces[ask.Namespace] {
		return math.MaxInt64
	}
	return nodes.Resources{Limits: []nodes.NodeLimit{func(n *nodes.Node, _ *nodes.Part) int64 {
		if p.has(n.Name) {
			return 0
		}
		return 1
	}}}.Most(x, ask)
}

// spread is another: topology spread. As many pods in each zone as in that which has room for the fewest, and one more.
type spread struct{}

// Name implements nodes.Plugin.
func (spread) Name() string { return "ZoneSpread" }

// Most implements nodes.Plugin.
func (spread) Most(x *nodes.Index, ask *nodes.Ask) int64 {
	zones := map[string]bool{}
	for n := range x.Nodes() {
		zones[n.Labels[corev1.LabelTopologyZone]] = true
	}
	least, sum := int64(math.MaxInt64), int64(0)
	fits := map[string]int64{}
	for zone := range zones {
		fits[zone] = nodes.Resources{Limits: []nodes.NodeLimit{func(n *nodes.Node, _ *nodes.Part) int64 {
			if n.Labels[corev1.LabelTopologyZone] != zone {
				return 0
			}
			return math.MaxInt64
		}}}.Most(x, ask)
		least = min(least, fits[zone])
	}
	for _, n := range fits {
		sum = estimate.Plus(sum, min(n, estimate.Plus(least, 1)))
	}
	return sum
}

// TestPluginsOfOnesOwn bound what fits by what they see: nodes with their labels and what they have free, and what is asked
// for. They go together with the built-in ones.
func TestPluginsOfOnesOwn(t *testing.T) {
	x := &nodes.Index{}
	for name, of := range map[string]struct{ zone, cpu string }{"a": {"one", "4"}, "b": {"one", "4"}, "c": {"two", "2"}, "d": {"two", "100m"}} {
		x.Node(name, &nodes.Node{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: of.zone}, Allocatable: nodes.AmountsOf(corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(of.cpu), corev1.ResourcePods: resource.MustParse("110"),
		})})
	}
	hostnames := apart{namespaces: map[string]bool{"db": true}, has: func(node string) bool { return node == "a" }}
	for name, tc := range map[string]struct {
		namespace string
		plugins   []nodes.Plugin
		assumed   []estimate.Assumed
		want      int32
	}{
		"without":                        {namespace: "db", want: 10},
		"one to a node that has room":    {namespace: "db", plugins: []nodes.Plugin{hostnames}, want: 2},
		"it does not mean the namespace": {namespace: "shop", plugins: []nodes.Plugin{hostnames}, want: 10},
		"two in the one zone, so three":  {namespace: "shop", plugins: []nodes.Plugin{spread{}}, want: 5},
		"both":                           {namespace: "db", plugins: []nodes.Plugin{hostnames, spread{}}, want: 2},
		"a promised pod takes a node":    {namespace: "db", plugins: []nodes.Plugin{hostnames}, assumed: []estimate.Assumed{{Namespace: "db", Components: []workv1alpha2.Component{component(4)}}}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			ask, err := nodes.AskForSets(tc.namespace, []workv1alpha2.Component{component(1)}, tc.assumed)
			if err != nil {
				t.Fatal(err)
			}
			if got := nodes.Most(x, ask, append([]nodes.Plugin{nodes.Resources{}, nodes.Quotas{}}, tc.plugins...)...); got != tc.want {
				t.Errorf("%d fit, want %d", got, tc.want)
			}
		})
	}
}

// component is one pod that needs so many cores.
func component(cores int64) workv1alpha2.Component {
	return workv1alpha2.Component{Name: "app", Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{
		ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cores, resource.DecimalSI)},
	}}
}
