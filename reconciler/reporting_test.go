package reconciler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/reconciler"
)

// registerReporting is registerEvictions with what taints clusters and counts quotas, reported in either of the two ways.
func registerReporting(as reconciler.Reporting) func(context.Context, ctrl.Manager) error {
	return func(ctx context.Context, mgr ctrl.Manager) error {
		return reconciler.Register(ctx, mgr, reconciler.Options{
			Controllers: []string{"template", "scheduler", "dependency", "binding", "namespace", "execution", "status", "cluster", "taintpolicy", "quota"},
			Scheduling:  reconciler.Scheduling{Failover: reconciler.Failover{Rules: failover.Rules{Taints: true}}},
			Reporting:   as,
		})
	}
}

// toldOnly reports whether these are all Events of a reason about what is of a test: each begins with how often it was reported.
func (m *moves) reportedOnly(ns, reason string, want ...string) error {
	m.Helper()
	var all corev1.EventList
	if err := m.hub.Hub.List(m.Context(), &all); err != nil {
		return err
	}
	var got []string
	for _, e := range all.Items {
		about := e.InvolvedObject
		if e.Reason == reason && (about.Namespace == ns || about.Kind == "Cluster") {
			text := fmt.Sprintf("%d %s in %s, %s %s: %s", e.Count, e.Type, strings.Replace(e.Namespace, ns, "NS", 1), about.Kind, about.Name, e.Message)
			for _, w := range want { // the beginning is enough
				if strings.HasPrefix(text, w) {
					text = w
				}
			}
			got = append(got, text)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("told (-want +got):\n%s", diff)
	}
	return nil
}

// taintPolicy taints a cluster that is ready.
func taintPolicy(cluster string) *policyv1alpha1.ClusterTaintPolicy {
	return &policyv1alpha1.ClusterTaintPolicy{ObjectMeta: metav1.ObjectMeta{Name: "drill"}, Spec: policyv1alpha1.ClusterTaintPolicySpec{
		TargetClusters: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}},
		AddOnConditions: []policyv1alpha1.MatchCondition{{
			ConditionType: clusterv1alpha1.ClusterConditionReady, Operator: policyv1alpha1.MatchConditionOpIn, StatusValues: []metav1.ConditionStatus{metav1.ConditionTrue},
		}},
		Taints: []policyv1alpha1.Taint{{Key: "policy", Effect: corev1.TaintEffectNoSchedule}},
	}}
}

// TestWhatIsReportedOfFailures: Karmada's Events about failover, taints and quotas, on what they are on, in both ways of
// reporting. What fails, and the end of a move, are reported in both; other successes with karmada only.
func TestWhatIsReportedOfFailures(t *testing.T) {
	for _, as := range []reconciler.Reporting{reconciler.ReportChanges, reconciler.ReportKarmada} {
		t.Run(string(as), func(t *testing.T) {
			m := newMovesWith(t, registerReporting(as))
			ns := m.hub.Namespace(t)
			m.check(m.hub.Hub.Create(m.Context(), &policyv1alpha1.FederatedResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "team"}, Spec: policyv1alpha1.FederatedResourceQuotaSpec{Overall: cores("10")},
			}))
			m.start(ns, func(p *policyv1alpha1.PropagationPolicy) {
				oneOf(0, policyv1alpha1.PurgeModeGracefully)(p)
				p.Spec.Placement.ClusterAffinity.ClusterNames = []string{from}
			}, from)
			m.edit(ns, affinity(from, to))
			both := func(kind, message string) []string {
				return []string{"1 " + kind + " in NS, Deployment web: " + message, "1 " + kind + " in NS, ResourceBinding web-deployment: " + message}
			}
			reported := func(reason string, want ...string) {
				t.Helper()
				m.eventually(reason, func() error { return m.reportedOnly(ns, reason, want...) })
			}

			m.taint(from, true)
			if as == reconciler.ReportKarmada {
				reported("EvictWorkloadFromClusterSucceed", both("Normal", "Evict from cluster east succeed.")...)
				reported("CollectOverallStatusSucceed", "1 Normal in NS, FederatedResourceQuota team: ")
			} else {
				reported("EvictWorkloadFromClusterSucceed", both("Normal", "Left cluster east (untolerated taint {drill:NoExecute}) for {west:1}")...)
				reported("CollectOverallStatusSucceed")
			}
			m.taint(to, true)
			reported("EvictWorkloadFromClusterFailed", both("Warning", "It stays in west")...)
			m.edit(ns, affinity("nowhere"))
			reported("ScheduleBindingFailed", both("Warning", "0/2 clusters are available")...)
			m.check(m.hub.Hub.Create(m.Context(), taintPolicy(from)))
			reported("TaintClusterSucceed", "1 Normal in default, Cluster east: added policy")
		})
	}
}
