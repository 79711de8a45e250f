package draining_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/draining"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestATaintNamesData: before a taint moves what runs in a cluster, it is said of all that holds data there whether it leaves, as
// a drain says it.
func TestATaintNamesData(t *testing.T) {
	const data = "it takes no data along: the PersistentVolumeClaims data-db-* stay in east, and elsewhere it goes on with those that are there, else with empty ones"
	now := time.Unix(1000, 0)
	ready := func(name string) *clusterv1alpha1.Cluster {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
		c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "statefulsets", Kind: "StatefulSet"}}}}
		return c
	}
	repair := []corev1.Taint{{Key: "repair", Effect: corev1.TaintEffectNoExecute}}
	one := []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}
	// put has a set be placed in one cluster by a policy, by a control plane whose failover is on or not known of.
	put := func(b *workv1alpha2.ResourceBinding, cluster string, on bool, tolerations ...corev1.Toleration) {
		record := placement.Record{Reason: workv1alpha2.BindingReasonSuccess}
		if on {
			record.Rules = &failover.Noted{Tolerance: 300}
		}
		b.Spec.Placement = &policyv1alpha1.Placement{SpreadConstraints: one, ClusterTolerations: tolerations}
		placement.Decision{Clusters: []workv1alpha2.TargetCluster{{Name: cluster}}, AppliedPlacement: placement.AppliedPlacement(b.Spec.Placement), Record: record}.Put(b)
	}
	for name, tc := range map[string]struct {
		in          string
		on          bool
		tolerations []corev1.Toleration
		taints      map[string][]corev1.Taint
		want        []string
	}{
		"it leaves":                           {in: "east", on: true, taints: map[string][]corev1.Taint{"east": repair}, want: []string{"warning: StatefulSet shop/db leaves east for west: " + data}},
		"nobody knows whether failover is on": {in: "east", taints: map[string][]corev1.Taint{"east": repair}, want: []string{"warning: if failover is on, StatefulSet shop/db leaves east for west: " + data}},
		"both clusters are tainted": {in: "east", on: true, taints: map[string][]corev1.Taint{"east": repair, "west": repair},
			want: []string{"note: StatefulSet shop/db stays in east: refused: no other place: 0/2 clusters are available: 2 cluster(s) had untolerated taint {repair:NoExecute}"}},
		"its policy tolerates it": {in: "east", on: true, tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, taints: map[string][]corev1.Taint{"east": repair},
			want: []string{"note: StatefulSet shop/db stays in east: its policy tolerates the taint"}},
		"its policy tolerates it for a while": {in: "east", on: true, tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists, TolerationSeconds: ptr.To[int64](90)}}, taints: map[string][]corev1.Taint{"east": repair},
			want: []string{"warning: StatefulSet shop/db leaves east at 00:18:10 UTC (in 90s): untolerated taint {repair:NoExecute}; " + data}},
		"it is not there":                {in: "west", on: true, taints: map[string][]corev1.Taint{"east": repair}},
		"the taint is the one of drains": {in: "east", taints: map[string][]corev1.Taint{"east": {failover.DrainTaint()}}, want: []string{"warning: StatefulSet shop/db leaves east for west: " + data}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, plain := placed("apps/v1", "StatefulSet", "db"), placed("apps/v1", "StatefulSet", "cache")
			put(db, tc.in, tc.on, tc.tolerations...)
			put(plain, "east", tc.on)
			stateless := set("cache")
			delete(stateless.Object, "spec")
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects([]client.Object{ready("east"), ready("west"), db, plain, set("db"), stateless}...).Build()
			effect := map[bool]string{true: "what runs there is moved", false: "what runs there is moved if failover is on (flotillad serve --failover=on)"}[tc.on]
			if got := draining.Effect(t.Context(), hub); got != effect {
				t.Errorf("effect: %q, want %q", got, effect)
			}
			if diff := cmp.Diff(tc.want, draining.Predict(t.Context(), hub, tc.taints, now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
