package failover_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/failover"
)

// TestDrain checks when a template must no longer run in a cluster that is
// drained, whether failover is enabled or not.
func TestDrain(t *testing.T) {
	const key = clusterv1alpha1.TaintClusterDrain
	drain := taint(key, corev1.TaintEffectNoExecute, 10*time.Second)
	cases := map[string]struct {
		cluster     *clusterv1alpha1.Cluster
		tolerations []corev1.Toleration
		due         bool
		in          time.Duration
	}{
		"nobody tolerates it":                 {cluster: member("a", "", long, drain), due: true},
		"it became ready just now":            {cluster: member("a", "", noon, drain), due: true},
		"tolerated for ever":                  {cluster: member("a", "", long, drain), tolerations: []corev1.Toleration{exists(key)}},
		"anything is tolerated":               {cluster: member("a", "", long, drain), tolerations: []corev1.Toleration{exists("")}},
		"tolerated for a while":               {cluster: member("a", "", long, drain), tolerations: []corev1.Toleration{exists(key, 30)}, in: 20 * time.Second},
		"the while is over":                   {cluster: member("a", "", long, drain), tolerations: []corev1.Toleration{exists(key, 10)}, due: true},
		"of another effect it keeps out only": {cluster: member("a", "", long, taint(key, corev1.TaintEffectNoSchedule, 0))},
		"one that is lost is not drained":     {cluster: member("a", clusterv1alpha1.ClusterNotReachableReason, noon.Add(-time.Minute), drain)},
		"one that leaves the fleet":           {cluster: leaving(member("a", "", long, drain))},
		"one that waits":                      {cluster: held(member("a", "", long, drain))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, on := range []bool{true, false} {
				due, next := failover.Rules{Taints: on}.Of(fleet{tc.cluster}, tc.tolerations, noon)
				if cause, is := due["a"]; is != tc.due || cause.Drain != is {
					t.Errorf("failover %t: due = %+v, want %t", on, due, tc.due)
				}
				var in time.Duration
				if !next.IsZero() {
					in = next.Sub(noon)
				}
				if in != tc.in {
					t.Errorf("failover %t: in %s, want %s", on, in, tc.in)
				}
			}
		})
	}
}
