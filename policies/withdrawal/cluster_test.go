package withdrawal_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/withdrawal"
)

func TestCluster(t *testing.T) {
	cluster := func(name string, labels map[string]string) *clusterv1alpha1.Cluster {
		return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	prod, typo := map[string]string{"env": "prod"}, map[string]string{"env": "prd"}
	cases := map[string]struct {
		after, other map[string]string
		want         string
	}{
		"nothing changes":                  {prod, prod, ""},
		"a value is mistyped":              {typo, prod, "the Cluster east gets the label env=prd, which no other one has"},
		"a key is mistyped":                {map[string]string{"evn": "prod"}, prod, "the Cluster east gets the label evn=prod, which no other one has"},
		"it becomes what another one is":   {map[string]string{"env": "test"}, map[string]string{"env": "test"}, ""},
		"both become something new":        {typo, typo, ""},
		"a label goes, and none comes":     {nil, prod, ""},
		"a label comes, and the old stays": {map[string]string{"env": "prod", "tier": "gold"}, prod, "the Cluster east gets the label tier=gold, which no other one has"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			after := cluster("east", tc.after)
			if got := withdrawal.Cluster(cluster("east", prod), after, []*clusterv1alpha1.Cluster{after, cluster("west", tc.other)}); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}
