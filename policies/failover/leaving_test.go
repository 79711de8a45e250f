package failover_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/failover"
)

// TestLeaves checks when a template will be moved away from a cluster, by the
// rules in the record of its decision.
func TestLeaves(t *testing.T) {
	const gone = clusterv1alpha1.ClusterNotReachableReason
	lost := func(taints ...corev1.Taint) *clusterv1alpha1.Cluster {
		return member("west", gone, noon.Add(-time.Minute), taints...)
	}
	suspected := func(c *clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster {
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionMassFailureSuspected, Status: metav1.ConditionTrue, Reason: clusterv1alpha1.MassFailureReason})
		return c
	}
	patient := failover.Rules{Taints: true, Tolerance: 5 * time.Minute}
	for name, tc := range map[string]struct {
		cluster     *clusterv1alpha1.Cluster
		rules       failover.Rules
		tolerations []corev1.Toleration
		want        string
	}{
		"it is well":                     {cluster: member("west", "", long)},
		"taints move nothing":            {cluster: lost(taint(unreachable, corev1.TaintEffectNoExecute, time.Minute)), rules: failover.Rules{Tolerance: time.Minute}},
		"it is lost":                     {cluster: lost(taint(unreachable, corev1.TaintEffectNoExecute, time.Minute)), rules: patient, want: "west at 12:04:00 UTC (in 4m) unless it is back: untolerated taint {cluster.karmada.io/unreachable:NoExecute}"},
		"others may be lost, too":        {cluster: lost(taint(unreachable, corev1.TaintEffectNoExecute, time.Second)), rules: failover.Rules{Taints: true}, want: "west at 12:00:19 UTC (in 19s) unless it is back: untolerated taint {cluster.karmada.io/unreachable:NoExecute}"},
		"probes are made more often":     {cluster: lost(taint(unreachable, corev1.TaintEffectNoExecute, time.Second)), rules: failover.Rules{Taints: true, Breaker: failover.Breaker{Skew: 11 * time.Second}}, want: "west at 12:00:10 UTC (in 10s) unless it is back: untolerated taint {cluster.karmada.io/unreachable:NoExecute}"},
		"its time is over":               {cluster: lost(taint(unreachable, corev1.TaintEffectNoExecute, 6*time.Minute)), rules: patient, want: "west now unless it is back: untolerated taint {cluster.karmada.io/unreachable:NoExecute}"},
		"the policy has another one":     {cluster: lost(taint(unreachable, corev1.TaintEffectNoExecute, time.Minute)), rules: patient, tolerations: []corev1.Toleration{exists(unreachable, 90)}, want: "west at 12:00:30 UTC (in 30s) unless it is back: untolerated taint {cluster.karmada.io/unreachable:NoExecute}"},
		"the policy tolerates it":        {cluster: lost(taint(unreachable, corev1.TaintEffectNoExecute, time.Minute)), rules: patient, tolerations: []corev1.Toleration{exists("")}},
		"it is well, and has a taint":    {cluster: member("west", "", long, taint("k", corev1.TaintEffectNoExecute, 0)), rules: patient, tolerations: []corev1.Toleration{exists("k", 30)}, want: "west at 12:00:30 UTC (in 30s): untolerated taint {k:NoExecute}"},
		"it was lost with many others":   {cluster: suspected(lost(taint(unreachable, corev1.TaintEffectNoExecute, time.Minute))), rules: patient, want: "stays in west, which it should leave (untolerated taint {cluster.karmada.io/unreachable:NoExecute}): MassFailureSuspected stands on it: flotilla describe cluster west"},
		"it answers again":               {cluster: member("west", clusterv1alpha1.ClusterAnswersAgainReason, noon, taint(unreachable, corev1.TaintEffectNoExecute, time.Hour)), rules: patient, want: "stays in west, which it should leave (untolerated taint {cluster.karmada.io/unreachable:NoExecute}): it is not known to be lost: AnswersAgain"},
		"it refuses the credentials":     {cluster: member("west", clusterv1alpha1.ClusterCredentialsRefusedReason, noon, taint(unreachable, corev1.TaintEffectNoExecute, time.Hour)), rules: patient, want: "stays in west, which it should leave (untolerated taint {cluster.karmada.io/unreachable:NoExecute}): it is not known to be lost: CredentialsRefused"},
		"it is drained, and not tainted": {cluster: member("west", "", long, failover.DrainTaint()), rules: patient},
	} {
		t.Run(name, func(t *testing.T) {
			encoded, err := json.Marshal(tc.rules.Noted())
			if err != nil {
				t.Fatal(err)
			}
			var noted *failover.Noted
			if err := json.Unmarshal(encoded, &noted); err != nil {
				t.Fatal(err)
			}
			rules, known := noted.Rules()
			if known != tc.rules.Taints {
				t.Fatalf("known: %t", known)
			}
			got := ""
			if l, leaves := rules.Leaves(tc.cluster, tc.tolerations, noon); leaves {
				got = l.Text(noon)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
