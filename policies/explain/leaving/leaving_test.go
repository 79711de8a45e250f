package leaving_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/explain/leaving"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// cluster returns a cluster that has been Ready, or lost for a reason, since
// before noon.
func cluster(name, reason string, taints ...corev1.Taint) *clusterv1alpha1.Cluster {
	status := metav1.ConditionTrue
	if reason != "" {
		status = metav1.ConditionFalse
	}
	out := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push, Taints: taints}}
	out.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}}
	for _, c := range []metav1.Condition{
		{Type: clusterv1alpha1.ClusterConditionReady, Status: status, Reason: reason},
		{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements, Status: metav1.ConditionTrue},
	} {
		c.LastTransitionTime = metav1.NewTime(noon.Add(-time.Minute))
		meta.SetStatusCondition(&out.Status.Conditions, c)
	}
	return out
}

func noExecute(key string) corev1.Taint {
	added := metav1.NewTime(noon.Add(-time.Minute))
	return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute, TimeAdded: &added}
}

// bound returns the binding of a Deployment in west that is to run in one
// cluster, decided with the given rules.
func bound(t *testing.T, rules failover.Rules) *workv1alpha2.ResourceBinding {
	t.Helper()
	record, err := json.Marshal(placement.Record{Reason: "Success", At: metav1.NewTime(noon.Add(-time.Hour)), Rules: rules.Noted()})
	if err != nil {
		t.Fatal(err)
	}
	placed := policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}}
	applied, err := json.Marshal(placed)
	if err != nil {
		t.Fatal(err)
	}
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", Generation: 1, Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"}}}
	b.Annotations = map[string]string{workv1alpha2.SchedulingDecisionAnnotation: string(record), policyv1alpha1.PolicyPlacementAnnotation: string(applied)}
	b.Spec = workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		Replicas: 1, Clusters: []workv1alpha2.TargetCluster{{Name: "west", Replicas: 1}},
		Placement: &placed,
	}
	return b
}

// TestOf checks which of its clusters a template will leave, and when.
func TestOf(t *testing.T) {
	const unreachable = clusterv1alpha1.TaintClusterUnreachable
	lost := cluster("west", clusterv1alpha1.ClusterNotReachableReason, noExecute(unreachable))
	well := cluster("east", "")
	drained := cluster("west", "", failover.DrainTaint())
	rules := failover.Rules{Taints: true, Tolerance: 5 * time.Minute}
	complete := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Resource.APIVersion, b.Spec.Resource.Kind = "batch/v1", "Job"
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "west", Applied: true, Status: &runtime.RawExtension{Raw: []byte(`{"conditions":[{"type":"Complete","status":"True"}]}`)}}}
	}
	for name, tc := range map[string]struct {
		rules    failover.Rules
		clusters []*clusterv1alpha1.Cluster
		change   func(*workv1alpha2.ResourceBinding)
		want     []string
	}{
		"its cluster is lost": {
			rules: rules, clusters: []*clusterv1alpha1.Cluster{well, lost},
			want: []string{"west at 12:04:00 UTC (in 4m) unless it is back: untolerated taint {cluster.karmada.io/unreachable:NoExecute}"},
		},
		"its cluster is lost, and there is no other": {
			rules: rules, clusters: []*clusterv1alpha1.Cluster{lost},
			want: []string{"not west, which it should leave (untolerated taint {cluster.karmada.io/unreachable:NoExecute}) at 12:04:00 UTC: it cannot be moved: no other place: 0/1 clusters are available: 1 cluster(s) had untolerated taint {cluster.karmada.io/unreachable:NoExecute}."},
		},
		"its cluster is lost, and it has finished there": {
			rules: rules, clusters: []*clusterv1alpha1.Cluster{well, lost},
			change: complete,
			want:   []string{"not west, which it should leave (untolerated taint {cluster.karmada.io/unreachable:NoExecute}): it has finished there, and would run once more elsewhere"},
		},
		"its cluster is drained, and it has finished there": {
			rules: rules, clusters: []*clusterv1alpha1.Cluster{well, drained}, change: complete,
			want: []string{"not west, which it should leave (untolerated taint {cluster.flotilla.io/drain:NoExecute}): it has finished there, and would run once more elsewhere"},
		},
		"its cluster is drained, it has finished there, and the decision has noted no rules": {
			clusters: []*clusterv1alpha1.Cluster{well, drained}, change: complete,
			want: []string{"not west, which it should leave (untolerated taint {cluster.flotilla.io/drain:NoExecute}): it has finished there, and would run once more elsewhere"},
		},
		"its cluster is drained, it has finished there, and its policy tolerates that": {
			rules: rules, clusters: []*clusterv1alpha1.Cluster{well, drained},
			change: func(b *workv1alpha2.ResourceBinding) {
				complete(b)
				b.Spec.Placement.ClusterTolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			},
		},
		"its cluster is drained, and it runs": {rules: rules, clusters: []*clusterv1alpha1.Cluster{well, drained}},
		"its cluster is well":                 {rules: rules, clusters: []*clusterv1alpha1.Cluster{well, cluster("west", "")}},
		"another cluster is lost":             {rules: rules, clusters: []*clusterv1alpha1.Cluster{cluster("north", clusterv1alpha1.ClusterNotReachableReason, noExecute(unreachable)), cluster("west", "")}},
		"the decision has noted no rules":     {clusters: []*clusterv1alpha1.Cluster{well, lost}},
		"it is being deleted": {
			rules: rules, clusters: []*clusterv1alpha1.Cluster{well, lost},
			change: func(b *workv1alpha2.ResourceBinding) { b.DeletionTimestamp = &metav1.Time{Time: noon} },
		},
		"it has no placement": {
			rules: rules, clusters: []*clusterv1alpha1.Cluster{well, lost},
			change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := bound(t, tc.rules)
			if tc.change != nil {
				tc.change(b)
			}
			in := placement.Situation{Clusters: placement.NewSnapshot(tc.clusters), Now: noon}
			got := leaving.Of(b, nil, tc.clusters, in, placement.Options{})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDataStaysBehind checks that users see that the volume claims of a
// StatefulSet do not move with it.
func TestDataStaysBehind(t *testing.T) {
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": map[string]any{"name": "db"},
		"spec": map[string]any{"volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": "data"}}}},
	}}
	since := metav1.NewTime(noon.Add(-30 * time.Second))
	taint := corev1.Taint{Key: clusterv1alpha1.TaintClusterUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &since}
	lost := cluster("west", clusterv1alpha1.ClusterNotReachableReason, taint)
	const data = "; it takes no data along: the PersistentVolumeClaims data-db-* stay in west, and elsewhere it goes on with those that are there, else with empty ones"
	for name, tc := range map[string]struct {
		clusters []*clusterv1alpha1.Cluster
		want     bool
	}{
		"it has another place": {[]*clusterv1alpha1.Cluster{cluster("east", ""), lost}, true},
		"it has none":          {[]*clusterv1alpha1.Cluster{lost}, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := placement.Situation{Clusters: placement.NewSnapshot(tc.clusters), Now: noon}
			b := bound(t, failover.Rules{Taints: true, Tolerance: time.Minute})
			got := leaving.Of(b, set, tc.clusters, in, placement.Options{})
			if len(got) != 1 || strings.HasSuffix(got[0], data) != tc.want || strings.Contains(got[0], "data-db") != tc.want {
				t.Errorf("told (want data: %t): %q", tc.want, got)
			}
		})
	}
}

// TestOver checks that a template which could not leave a drained cluster need
// not leave it any more once the drain has ended.
func TestOver(t *testing.T) {
	const drain, other = "It stays in west (untolerated taint {cluster.flotilla.io/drain:NoExecute}): none", "It stays in west (untolerated taint {a:NoExecute}): none"
	drained := cluster("west", "", failover.DrainTaint())
	for name, tc := range map[string]struct {
		stays   placement.Stays
		cluster *clusterv1alpha1.Cluster
		want    bool
	}{
		"the drain goes on":        {placement.Stays{Message: drain, Clusters: []string{"west"}}, drained, false},
		"it has ended":             {placement.Stays{Message: drain, Clusters: []string{"west"}}, cluster("west", ""), true},
		"it was for another taint": {placement.Stays{Message: other, Clusters: []string{"west"}}, cluster("west", ""), false},
		"no cluster is named":      {placement.Stays{Message: drain}, cluster("west", ""), false},
		"another one is drained":   {placement.Stays{Message: drain, Clusters: []string{"east"}}, drained, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := leaving.Over(&tc.stays, []*clusterv1alpha1.Cluster{tc.cluster}); got != tc.want {
				t.Errorf("over: %t, want %t", got, tc.want)
			}
		})
	}
}
