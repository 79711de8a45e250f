package plugins_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/plugins"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// member is in region eu, with a taint, and serves ConfigMaps.
func member(edits ...func(*clusterv1alpha1.Cluster)) *framework.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	c.Spec.Region = "eu"
	c.Spec.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}, {Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}}
	c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Kind: "ConfigMap"}}}}
	for _, e := range edits {
		e(c)
	}
	return framework.NewCluster(c)
}

func TestFilters(t *testing.T) {
	const noAPI, tainted = "cluster(s) did not have the API resource", "cluster(s) had untolerated taint {k=v:NoExecute}"
	here := []workv1alpha2.TargetCluster{{Name: "a"}}
	other, err := selector.Compile(&policyv1alpha1.ClusterAffinity{ClusterNames: []string{"b"}})
	if err != nil {
		t.Fatal(err)
	}
	kind := func(k string) workv1alpha2.ObjectReference {
		return workv1alpha2.ObjectReference{APIVersion: "v1", Kind: k}
	}
	tolerate := func(ts ...corev1.Toleration) *policyv1alpha1.Placement {
		return &policyv1alpha1.Placement{ClusterTolerations: ts}
	}
	by := func(fields ...policyv1alpha1.SpreadFieldValue) *policyv1alpha1.Placement {
		p := &policyv1alpha1.Placement{}
		for _, f := range fields {
			p.SpreadConstraints = append(p.SpreadConstraints, policyv1alpha1.SpreadConstraint{SpreadByField: f})
		}
		return p
	}
	complete := func(c *clusterv1alpha1.Cluster) {
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements, Status: metav1.ConditionTrue}}
	}
	cases := map[string]struct {
		filter  framework.Filter
		spec    workv1alpha2.ResourceBindingSpec
		place   *policyv1alpha1.Placement
		request framework.Request
		cluster *framework.Cluster
		want    string
	}{
		"an API that is served":                      {filter: plugins.APIEnablement{}, spec: workv1alpha2.ResourceBindingSpec{Resource: kind("ConfigMap")}},
		"an API that is not known to be":             {filter: plugins.APIEnablement{}, spec: workv1alpha2.ResourceBindingSpec{Resource: kind("X")}, want: noAPI},
		"an API that is known not to be":             {filter: plugins.APIEnablement{}, spec: workv1alpha2.ResourceBindingSpec{Resource: kind("X")}, cluster: member(complete), want: noAPI},
		"an API that went while it ran":              {filter: plugins.APIEnablement{}, spec: workv1alpha2.ResourceBindingSpec{Resource: kind("X"), Clusters: here}},
		"no toleration":                              {filter: plugins.TaintToleration{}, want: tainted},
		"what runs there stays":                      {filter: plugins.TaintToleration{}, spec: workv1alpha2.ResourceBindingSpec{Clusters: here}},
		"tolerates the key":                          {filter: plugins.TaintToleration{}, place: tolerate(corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists})},
		"tolerates the value":                        {filter: plugins.TaintToleration{}, place: tolerate(corev1.Toleration{Key: "k", Value: "v"})},
		"tolerates another value":                    {filter: plugins.TaintToleration{}, place: tolerate(corev1.Toleration{Key: "k", Value: "w"}), want: tainted},
		"tolerates another effect":                   {filter: plugins.TaintToleration{}, place: tolerate(corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}), want: tainted},
		"tolerates everything":                       {filter: plugins.TaintToleration{}, place: tolerate(corev1.Toleration{Operator: corev1.TolerationOpExists})},
		"an equal value of no key tolerates nothing": {filter: plugins.TaintToleration{}, place: tolerate(corev1.Toleration{Value: "v"}), want: tainted},
		"an operator that nobody knows":              {filter: plugins.TaintToleration{}, place: tolerate(corev1.Toleration{Key: "k", Operator: "Lt", Value: "v"}), want: tainted},
		"no affinity":                                {filter: plugins.ClusterAffinity{}},
		"an affinity to another":                     {filter: plugins.ClusterAffinity{}, request: framework.Request{Affinity: other}, want: "cluster(s) did not match the placement cluster affinity constraint"},
		"an overflow affinity that means it":         {filter: plugins.ClusterAffinity{}, request: framework.Request{Affinity: other, Overflow: []selector.Clusters{other, {}}}},
		"spread by a property that it has":           {filter: plugins.SpreadConstraint{}, place: by("region", "cluster")},
		"spread by a provider that it lacks":         {filter: plugins.SpreadConstraint{}, place: by("region", "provider"), want: "cluster(s) did not have provider property"},
		"spread by a region that it lacks":           {filter: plugins.SpreadConstraint{}, place: by("region"), cluster: member(func(c *clusterv1alpha1.Cluster) { c.Spec.Region = "" }), want: "cluster(s) did not have region property"},
		"spread by zones that it lacks":              {filter: plugins.SpreadConstraint{}, place: by("zone"), want: "cluster(s) did not have zones property"},
		"being left":                                 {filter: plugins.ClusterEviction{}, spec: workv1alpha2.ResourceBindingSpec{GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{{FromCluster: "a"}}}, want: "cluster(s) is in the process of eviction"},
		"while another is being left":                {filter: plugins.ClusterEviction{}, spec: workv1alpha2.ResourceBindingSpec{GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{{FromCluster: "b"}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := tc.request
			req.Spec, req.Placement = &tc.spec, tc.place
			if req.Placement == nil {
				req.Placement = &policyv1alpha1.Placement{}
			}
			c := tc.cluster
			if c == nil {
				c = member()
			}
			if got := tc.filter.Filter(&req, c); got != tc.want {
				t.Errorf("refused with %q, want %q", got, tc.want)
			}
		})
	}
}

func TestScores(t *testing.T) {
	req := &framework.Request{Spec: &workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{{Name: "a"}}}}
	elsewhere := member(func(c *clusterv1alpha1.Cluster) { c.Name = "b" })
	got := []int64{
		plugins.ClusterLocality{}.Score(req, member()), plugins.ClusterLocality{}.Score(req, elsewhere),
		plugins.ClusterAffinity{}.Score(req, member()),
	}
	if diff := cmp.Diff([]int64{100, 0, 0}, got); diff != "" {
		t.Errorf("scores (-want +got):\n%s", diff)
	}
}

func TestSelect(t *testing.T) {
	cases := map[string]struct {
		patterns []string
		want     []string
	}{
		"all":                    {[]string{"*"}, []string{"APIEnablement", "TaintToleration", "ClusterAffinity", "SpreadConstraint", "ClusterEviction", "ClusterLocality"}},
		"none":                   {nil, nil},
		"one":                    {[]string{"ClusterEviction"}, []string{"ClusterEviction"}},
		"all but one":            {[]string{"*", "-TaintToleration"}, []string{"APIEnablement", "ClusterAffinity", "SpreadConstraint", "ClusterEviction", "ClusterLocality"}},
		"off stays off":          {[]string{"-ClusterEviction", "ClusterEviction"}, nil},
		"a name that nobody has": {[]string{"Nobody"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range framework.Select(plugins.All(), tc.patterns) {
				got = append(got, p.Name())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plugins (-want +got):\n%s", diff)
			}
		})
	}
}
