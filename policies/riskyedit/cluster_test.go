package riskyedit_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/riskyedit"
)

func TestEditTakes(t *testing.T) {
	type clusters = map[string]*clusterv1alpha1.Cluster
	of := func(tier, region string) *clusterv1alpha1.Cluster {
		out := &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{Region: region}}
		if tier != "" {
			out.Labels = map[string]string{"tier": tier}
		}
		return out
	}
	golden := clusters{"east": of("gold", "eu"), "west": of("gold", "eu"), "edge": of("silver", "us")}
	with := func(changes clusters) clusters {
		out := clusters{}
		for name, c := range golden {
			if out[name] = c; changes[name] != nil {
				out[name] = changes[name]
			}
		}
		return out
	}
	teir := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"teir": "gold"}}, Spec: clusterv1alpha1.ClusterSpec{Region: "eu"}}
	marked := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"tier": "gold", "maintenance": "true"}}, Spec: clusterv1alpha1.ClusterSpec{Region: "eu"}}
	affinity := func(a policyv1alpha1.ClusterAffinity) *policyv1alpha1.PropagationSpec {
		return &policyv1alpha1.PropagationSpec{Placement: policyv1alpha1.Placement{ClusterAffinity: &a}}
	}
	byTier := func(tier string) *policyv1alpha1.PropagationSpec {
		return affinity(policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": tier}}})
	}
	byRegion := affinity(policyv1alpha1.ClusterAffinity{FieldSelector: &policyv1alpha1.FieldSelector{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "region", Operator: corev1.NodeSelectorOpIn, Values: []string{"eu"}}}}})
	unmarked := affinity(policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "maintenance", Operator: metav1.LabelSelectorOpDoesNotExist}}}})
	gold := byTier("gold")
	cases := map[string]struct {
		after   clusters
		was, is *policyv1alpha1.PropagationSpec
		want    string
	}{
		"nothing changes":                            {golden, gold, gold, ""},
		"a value is mistyped":                        {with(clusters{"east": of("glod", "eu")}), gold, gold, "the Cluster east gets the label tier=glod, which none had"},
		"all are mistyped the same":                  {with(clusters{"east": of("glod", "eu"), "west": of("glod", "eu")}), gold, gold, "the Cluster east gets the label tier=glod, which none had"},
		"a key is mistyped":                          {with(clusters{"east": teir}), gold, gold, "the Cluster east gets the label teir=gold, which none had"},
		"a mistyped label that nobody asks for":      {with(clusters{"east": of("glod", "eu")}), byRegion, byRegion, ""},
		"a region is mistyped":                       {with(clusters{"east": of("gold", "ue")}), byRegion, byRegion, "the Cluster east gets the region ue, which none had"},
		"it becomes what another one is":             {with(clusters{"east": of("silver", "eu")}), gold, gold, ""},
		"it moves to a region that there is":         {with(clusters{"east": of("gold", "us")}), byRegion, byRegion, ""},
		"it leaves the group":                        {with(clusters{"east": of("", "eu")}), gold, gold, ""},
		"all leave the group":                        {with(clusters{"east": of("", "eu"), "west": of("", "eu")}), gold, gold, "labelSelector asks for tier=gold, which no cluster has"},
		"all become what another one is":             {with(clusters{"east": of("silver", "eu"), "west": of("silver", "eu")}), gold, gold, "labelSelector asks for tier=gold, which no cluster has"},
		"a group is renamed, and the policy with it": {with(clusters{"east": of("best", "eu"), "west": of("best", "eu")}), gold, byTier("best"), ""},
		"it is marked, which takes it out":           {with(clusters{"east": marked}), unmarked, unmarked, ""},
		"all are marked": {
			clusters{"east": marked, "west": marked, "edge": marked}, unmarked, unmarked, "what carries it means no cluster of the fleet any more",
		},
	}
	fleet := func(by clusters) []*clusterv1alpha1.Cluster {
		var out []*clusterv1alpha1.Cluster
		for _, name := range []string{"east", "west", "edge"} {
			c := by[name].DeepCopy()
			c.Name = name
			out = append(out, c)
		}
		return out
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (riskyedit.Edit{Before: fleet(golden), After: fleet(tc.after)}).Takes(tc.was, tc.is, "east"); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}
