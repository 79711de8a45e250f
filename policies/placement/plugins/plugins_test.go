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
	byLabel := func(key string) *policyv1alpha1.Placement {
		return &policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByLabel: key}}}
	}
	groups := func(affinity, anti string, on ...workv1alpha2.TargetCluster) workv1alpha2.ResourceBindingSpec {
		return workv1alpha2.ResourceBindingSpec{Clusters: on, WorkloadAffinityGroups: &workv1alpha2.WorkloadAffinityGroups{AffinityGroup: affinity, AntiAffinityGroup: anti}}
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
		"spread by a label that it has":              {filter: plugins.SpreadConstraint{}, place: byLabel("rack"), cluster: member(func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"rack": "r1"} })},
		"spread by a label that it lacks":            {filter: plugins.SpreadConstraint{}, place: byLabel("rack"), want: "cluster(s) did not have label rack"},
		"spread by what nobody knows":                {filter: plugins.SpreadConstraint{}, place: by("planet")},
		"in no group to be with":                     {filter: plugins.WorkloadAffinity{}, request: framework.Request{Peers: framework.Peers{Affinity: [][]string{{"b"}}}.Index()}},
		"nobody else of the group runs yet":          {filter: plugins.WorkloadAffinity{}, spec: groups("app=x", "")},
		"all others of the group run there":          {filter: plugins.WorkloadAffinity{}, spec: groups("app=x", ""), request: framework.Request{Peers: framework.Peers{Affinity: [][]string{{"a", "b"}, {"a", "a"}}}.Index()}},
		"one other of the group does not run there":  {filter: plugins.WorkloadAffinity{}, spec: groups("app=x", ""), request: framework.Request{Peers: framework.Peers{Affinity: [][]string{{"a", "b"}, {"b"}}}.Index()}, want: "cluster(s) did not run all workloads of affinity group app=x"},
		"what one lists twice does not count twice":  {filter: plugins.WorkloadAffinity{}, spec: groups("app=x", ""), request: framework.Request{Peers: framework.Peers{Affinity: [][]string{{"a", "a"}, {"b"}}}.Index()}, want: "cluster(s) did not run all workloads of affinity group app=x"},
		"it stays where the group was":               {filter: plugins.WorkloadAffinity{}, spec: groups("app=x", "", here...), request: framework.Request{Peers: framework.Peers{Affinity: [][]string{{"b"}}}.Index()}},
		"in no group to be apart from":               {filter: plugins.WorkloadAntiAffinity{}, request: framework.Request{Peers: framework.Peers{AntiAffinity: [][]string{{"a"}}}.Index()}},
		"no other of the group runs there":           {filter: plugins.WorkloadAntiAffinity{}, spec: groups("", "app=x"), request: framework.Request{Peers: framework.Peers{AntiAffinity: [][]string{{"b"}}}.Index()}},
		"another of the group runs there":            {filter: plugins.WorkloadAntiAffinity{}, spec: groups("", "app=x"), request: framework.Request{Peers: framework.Peers{AntiAffinity: [][]string{{"b"}, {"c", "a"}}}.Index()}, want: "cluster(s) ran workloads of anti-affinity group app=x"},
		"it stays although another came":             {filter: plugins.WorkloadAntiAffinity{}, spec: groups("", "app=x", here...), request: framework.Request{Peers: framework.Peers{AntiAffinity: [][]string{{"a"}}}.Index()}},
		"being left":                                 {filter: plugins.ClusterEviction{}, spec: workv1alpha2.ResourceBindingSpec{GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{{FromCluster: "a"}}}, want: "cluster(s) is in the process of eviction"},
		"it is to leave, and is placed there still":  {filter: plugins.ClusterEviction{}, spec: workv1alpha2.ResourceBindingSpec{Clusters: here, GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{{FromCluster: "a"}}}},
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
		"all":                    {[]string{"*"}, []string{"APIEnablement", "TaintToleration", "ClusterAffinity", "SpreadConstraint", "ClusterEviction", "WorkloadAntiAffinity", "WorkloadAffinity", "ClusterLocality"}},
		"none":                   {nil, nil},
		"one":                    {[]string{"ClusterEviction"}, []string{"ClusterEviction"}},
		"all but one":            {[]string{"*", "-TaintToleration"}, []string{"APIEnablement", "ClusterAffinity", "SpreadConstraint", "ClusterEviction", "WorkloadAntiAffinity", "WorkloadAffinity", "ClusterLocality"}},
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

// useless is a plugin of a name that does nothing.
type useless string

func (u useless) Name() string { return string(u) }

// rated is a plugin of a name that scores.
type rated struct{ useless }

func (rated) Score(*framework.Request, *framework.Cluster) int64 { return 1 }

func TestCheck(t *testing.T) {
	with := func(more ...framework.Plugin) []framework.Plugin { return append(plugins.All(), more...) }
	cases := map[string]struct {
		all      []framework.Plugin
		patterns []string
		want     string
	}{
		"what there is":                    {with(rated{"Mine"}), []string{"*", "-ClusterEviction", "Mine"}, ""},
		"a name that nobody has":           {[]framework.Plugin{plugins.ClusterEviction{}, plugins.ClusterLocality{}}, []string{"*", "-Eviction"}, `there is no plugin "Eviction": there are ClusterEviction, ClusterLocality`},
		"an empty name":                    {[]framework.Plugin{plugins.ClusterEviction{}}, []string{""}, `there is no plugin "": there are ClusterEviction`},
		"two of one name":                  {with(rated{"ClusterEviction"}), nil, `there are two plugins "ClusterEviction"`},
		"a name that a pattern cannot say": {with(rated{"-Mine"}), nil, `a plugin cannot be called "-Mine"`},
		"a plugin without a name":          {with(rated{""}), nil, `a plugin cannot be called ""`},
		"a plugin that does nothing":       {with(useless("Mine")), nil, "plugin Mine neither filters nor scores"},
		"no plugin":                        {with(nil), nil, "a plugin is nil"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := framework.Check(tc.all, tc.patterns); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("error %q, want %q", got, tc.want)
			}
		})
	}
}
