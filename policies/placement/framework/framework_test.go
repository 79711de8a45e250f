package framework

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// cluster is one of that name, as change makes it.
func cluster(name string, change func(*clusterv1alpha1.Cluster)) *Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if change != nil {
		change(c)
	}
	return NewCluster(c)
}

func TestCandidatesAreSorted(t *testing.T) {
	candidate := func(name string, tier int, score, capacity int64, assigned int32) Candidate {
		return Candidate{Cluster: cluster(name, nil), Tier: tier, Score: score, Capacity: capacity, Assigned: assigned}
	}
	all := []Candidate{
		candidate("last", 1, 100, 100, 0), candidate("b", 0, 50, 1, 1), candidate("a", 0, 50, 2, 0), candidate("roomy", 0, 50, 2, 1), candidate("first", 0, 60, 0, 0),
	}
	Sort(all)
	var got []string
	for _, c := range all {
		got = append(got, c.Name)
	}
	if diff := cmp.Diff([]string{"first", "roomy", "a", "b", "last"}, got); diff != "" {
		t.Errorf("sorted (-want +got):\n%s", diff)
	}
}

func TestWhatAClusterServes(t *testing.T) {
	complete := func(c *clusterv1alpha1.Cluster) {
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements, Status: metav1.ConditionTrue}}
	}
	apps := func(c *clusterv1alpha1.Cluster) {
		c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "v1"}, {GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Kind: "Deployment"}}}}
	}
	arriving := cluster("a", complete)
	arriving.Arriving = schema.GroupVersionKind{Group: "harbor.io", Version: "v1", Kind: "Quay"}
	cases := map[string]struct {
		in               *Cluster
		apiVersion, kind string
		want             clusterv1alpha1.APIEnablementStatus
	}{
		"a kind that it lists":                       {in: cluster("a", apps), apiVersion: "apps/v1", kind: "Deployment", want: clusterv1alpha1.APIEnabled},
		"one that it does not":                       {in: cluster("a", apps), apiVersion: "apps/v1", kind: "DaemonSet", want: clusterv1alpha1.APIUnknown},
		"one that it does not, and it lists all":     {in: cluster("a", complete), apiVersion: "apps/v1", kind: "Deployment", want: clusterv1alpha1.APIDisabled},
		"one whose definition is on its way":         {in: arriving, apiVersion: "harbor.io/v1", kind: "Quay", want: clusterv1alpha1.APIEnabled},
		"another version of that":                    {in: arriving, apiVersion: "harbor.io/v2", kind: "Quay", want: clusterv1alpha1.APIDisabled},
		"no kind, where no definition is on its way": {in: cluster("a", complete), want: clusterv1alpha1.APIDisabled},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.in.API(tc.apiVersion, tc.kind); got != tc.want {
				t.Errorf("%s %s is %s, want %s", tc.apiVersion, tc.kind, got, tc.want)
			}
		})
	}
}

func TestTaintsThatBar(t *testing.T) {
	c := cluster("a", func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = []corev1.Taint{{Key: "a", Value: "b", Effect: corev1.TaintEffectNoSchedule}, {Key: "c", Effect: corev1.TaintEffectPreferNoSchedule}, {Key: "d", Effect: corev1.TaintEffectNoExecute}}
	})
	var got []string
	for _, t := range c.Barring {
		got = append(got, t.Reason)
	}
	want := []string{"cluster(s) had untolerated taint {a=b:NoSchedule}", "cluster(s) had untolerated taint {d:NoExecute}"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("barring (-want +got):\n%s", diff)
	}
}

func TestTargetsOfARequest(t *testing.T) {
	for _, n := range []int{0, 2, manyTargets} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			req := &Request{Spec: &workv1alpha2.ResourceBindingSpec{}}
			for i := range n {
				req.Spec.Clusters = append(req.Spec.Clusters, workv1alpha2.TargetCluster{Name: fmt.Sprint("c", i)})
			}
			req.Ready()
			for i := range n {
				if name := fmt.Sprint("c", i); !req.Targets(name) {
					t.Errorf("%s is no target", name)
				}
			}
			if req.Targets("other") {
				t.Error("other is a target")
			}
		})
	}
}

func TestGrouping(t *testing.T) {
	in := cluster("a", func(c *clusterv1alpha1.Cluster) {
		c.Labels = map[string]string{"rack": "r1"}
		c.Spec.Region, c.Spec.Provider, c.Spec.Zones = "eu", "own", []string{"z1", "z2"}
	})
	bare := cluster("b", nil)
	type outcome struct {
		Values, Bare        []string
		Has, BareHas        bool
		Name, One, Two, Err string
	}
	cases := map[string]struct {
		by   policyv1alpha1.SpreadConstraint
		want outcome
	}{
		"nothing said":  {want: outcome{Values: []string{"a"}, Bare: []string{"b"}, Has: true, BareHas: true, Name: "cluster", One: "1 cluster", Two: "2 clusters"}},
		"region":        {by: policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByFieldRegion}, want: outcome{Values: []string{"eu"}, Has: true, Name: "region", One: "1 region", Two: "2 regions"}},
		"provider":      {by: policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByFieldProvider}, want: outcome{Values: []string{"own"}, Has: true, Name: "provider", One: "1 provider", Two: "2 providers"}},
		"zone":          {by: policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByFieldZone}, want: outcome{Values: []string{"z1", "z2"}, Has: true, Name: "zone", One: "1 zone", Two: "2 zones"}},
		"a label":       {by: policyv1alpha1.SpreadConstraint{SpreadByLabel: "rack"}, want: outcome{Values: []string{"r1"}, Has: true, Name: "label rack", One: "1 value of label rack", Two: "2 values of label rack"}},
		"no such field": {by: policyv1alpha1.SpreadConstraint{SpreadByField: "mood"}, want: outcome{Err: `spread by "mood": clusters have no such field`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, err := GroupingOf(&tc.by)
			var got outcome
			if err != nil {
				got.Err = err.Error()
			} else {
				got = outcome{Values: g.AppendValues(nil, in), Bare: g.AppendValues(nil, bare), Has: g.Has(in), BareHas: g.Has(bare), Name: g.String(), One: g.Count(1), Two: g.Count(2)}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("grouping (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPeers(t *testing.T) {
	x := Peers{Affinity: [][]string{{"a", "b", "a"}, {"b"}}, AntiAffinity: [][]string{{"c"}, {"c", "d"}}}.Index()
	type place struct{ Together, Apart bool }
	got := map[string]place{}
	for _, name := range []string{"a", "b", "c", "e"} {
		got[name] = place{x.Together(name), x.Apart(name)}
	}
	want := map[string]place{"a": {false, true}, "b": {true, true}, "c": {false, false}, "e": {false, true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("peers (-want +got):\n%s", diff)
	}
	if none := (Peers{}).Index(); !none.Together("a") || !none.Apart("a") {
		t.Error("without peers it may run anywhere")
	}
}

func TestLackOfCapacityHasOneCause(t *testing.T) {
	a, b := &UnschedulableError{Message: "0/3 clusters"}, &UnschedulableError{Message: "0/5 clusters", Spread: true}
	if a.Cause() != b.Cause() || a.Error() != "0/3 clusters" {
		t.Errorf("%q and %q have the causes %q and %q", a, b, a.Cause(), b.Cause())
	}
}

type named string

func (n named) Name() string { return string(n) }

type filter struct{ named }

func (filter) Filter(*Request, *Cluster) string { return "" }

type score struct{ named }

func (score) Score(*Request, *Cluster) int64 { return MaxScore }

func TestSelect(t *testing.T) {
	all := []Plugin{filter{"quay"}, score{"price"}, filter{"taint"}}
	cases := map[string]struct {
		patterns, want []string
	}{
		"none":                {},
		"all":                 {patterns: []string{"*"}, want: []string{"quay", "price", "taint"}},
		"one":                 {patterns: []string{"price"}, want: []string{"price"}},
		"all but one":         {patterns: []string{"*", "-quay"}, want: []string{"price", "taint"}},
		"off wins, wherever":  {patterns: []string{"-quay", "quay", "taint"}, want: []string{"taint"}},
		"off alone has no on": {patterns: []string{"-quay"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range Select(all, tc.patterns) {
				got = append(got, p.Name())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("selected (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		all      []Plugin
		patterns []string
		want     string
	}{
		"all is well":              {all: []Plugin{filter{"quay"}, score{"price"}}, patterns: []string{"*", "-quay", "price"}},
		"nil":                      {all: []Plugin{nil}, want: "a plugin is nil"},
		"no name":                  {all: []Plugin{filter{""}}, want: `a plugin cannot be called ""`},
		"a name that means all":    {all: []Plugin{filter{"*"}}, want: `a plugin cannot be called "*"`},
		"a name that means off":    {all: []Plugin{filter{"-a"}}, want: `a plugin cannot be called "-a"`},
		"a name that is a list":    {all: []Plugin{filter{"a, b"}}, want: `a plugin cannot be called "a, b"`},
		"two of one name":          {all: []Plugin{filter{"a"}, score{"a"}}, want: `there are two plugins "a"`},
		"one that does nothing":    {all: []Plugin{named("a")}, want: "plugin a neither filters nor scores"},
		"a pattern of none":        {all: []Plugin{filter{"a"}, score{"b"}}, patterns: []string{"c"}, want: `there is no plugin "c": there are a, b`},
		"a pattern that turns off": {all: []Plugin{filter{"a"}}, patterns: []string{"-c"}, want: `there is no plugin "c": there are a`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := Check(tc.all, tc.patterns); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("says %q, want %q", got, tc.want)
			}
		})
	}
}
