package departing_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/departing"
)

// TestTemplates: of a lost cluster it is said what will leave it and when, not what tolerates that or runs elsewhere.
func TestTemplates(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	west := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
	west.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ClusterNotReachableReason, LastTransitionTime: metav1.NewTime(noon)}}
	west.Spec.Taints = []corev1.Taint{{Key: clusterv1alpha1.TaintClusterUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: ptr.To(metav1.NewTime(noon))}}
	const failover = `{"reason":"Success","failover":{"tolerance":300,"skew":20}}`
	placed := func(record string, cluster string, tolerates ...corev1.Toleration) workv1alpha2.Binding {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{workv1alpha2.SchedulingDecisionAnnotation: record}}}
		b.Spec.Clusters, b.Spec.Placement = []workv1alpha2.TargetCluster{{Name: cluster}}, &policyv1alpha1.Placement{ClusterTolerations: tolerates}
		return b
	}
	pinned := func(names ...string) workv1alpha2.Binding {
		b := placed(failover, "west")
		b.BindingSpec().Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: names}
		return b
	}
	terms := placed(failover, "west")
	terms.BindingSpec().Placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "first", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"west"}}},
		{AffinityName: "then", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east"}}},
	}
	lost := west.DeepCopy()
	lost.Name = "lost"
	fleet := []*clusterv1alpha1.Cluster{west, lost, {ObjectMeta: metav1.ObjectMeta{Name: "east"}}}
	until := func(seconds int64) corev1.Toleration {
		return corev1.Toleration{Key: clusterv1alpha1.TaintClusterUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds}
	}
	forever := corev1.Toleration{Operator: corev1.TolerationOpExists}
	for name, tc := range map[string]struct {
		bindings []workv1alpha2.Binding
		after    time.Duration // the loss
		want     string
	}{
		"nothing is there":                   {bindings: []workv1alpha2.Binding{placed(failover, "east")}},
		"failover is off":                    {bindings: []workv1alpha2.Binding{placed(`{"reason":"Success"}`, "west")}, want: "; 1 template stays in it, unless failover was turned on since (flotillad serve --failover=on)"},
		"failover is off, and two are there": {bindings: []workv1alpha2.Binding{placed(`{"reason":"Success"}`, "west"), placed(`{"reason":"Success"}`, "west")}, want: "; 2 templates stay in it, unless failover was turned on since (flotillad serve --failover=on)"},
		"one is to leave":                    {bindings: []workv1alpha2.Binding{placed(failover, "west"), placed(failover, "west", forever)}, want: "; 1 template leaves it at 12:05:00 UTC, unless it is back"},
		"two at the same time":               {bindings: []workv1alpha2.Binding{placed(failover, "west"), placed(failover, "west")}, want: "; 2 templates leave it at 12:05:00 UTC, unless it is back"},
		"two, one after another":             {bindings: []workv1alpha2.Binding{placed(failover, "west"), placed(failover, "west", until(60))}, want: "; 2 templates leave it from 12:01:00 to 12:05:00 UTC, unless it is back"},
		"one that may go nowhere else":       {bindings: []workv1alpha2.Binding{pinned("west")}, want: "; 1 template should leave it, and has no other place"},
		"two whose other place is lost, too": {bindings: []workv1alpha2.Binding{pinned("west", "lost"), pinned("west", "lost")}, want: "; 2 templates should leave it, and have no other place"},
		"some that may go elsewhere, and one that may not": {bindings: []workv1alpha2.Binding{pinned("west", "east"), pinned("west"), terms},
			want: "; 2 templates leave it at 12:05:00 UTC, unless it is back; 1 template should leave it, and has no other place"},
		"failover was turned on since one was placed": {bindings: []workv1alpha2.Binding{placed(`{"reason":"Success"}`, "west"), placed(failover, "west")}, want: "; 1 template leaves it at 12:05:00 UTC, unless it is back"},
		"it is being moved":                           {bindings: []workv1alpha2.Binding{placed(failover, "west")}, after: 6 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			all := departing.Templates{}
			for _, b := range tc.bindings {
				all.Take(b, west, fleet, noon.Add(tc.after))
			}
			if diff := cmp.Diff(tc.want, all.Text("west")); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}
