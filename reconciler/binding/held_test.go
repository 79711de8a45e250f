package binding_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// movedWhileHeld returns a fleet in which "web" runs in a, an edit of it is held back for good as no policy carries it any more, and
// somebody moves it to b.
func movedWhileHeld(t *testing.T, mode policyv1alpha1.PurgeMode) *fleet {
	f := newFleet(t, "a", "b")
	policy := f.policy("p", deployments("web"))
	policy.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{f.cluster("a")}}
	f.create(policy, f.deployment("web"))
	f.arrive("web", "a")
	f.check(f.env.Hub.Delete(f.Context(), policy))
	eventually(f, "holder", [2]string{}, func() [2]string { return f.holder("web") })
	edit(f, f.deployment("web"), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Image = "registry.example/web:2"
		d.Spec.Replicas = ptr.To[int32](7)
	})
	f.awaitIdle()
	edit(f, f.binding("Deployment", "web"), func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: f.cluster("b"), Replicas: 2}}
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
			FromCluster: f.cluster("a"), PurgeMode: mode, Reason: "TaintUntolerated", Producer: "TaintManager",
			CreationTimestamp: ptr.To(metav1.NewTime(time.Now().UTC().Truncate(time.Second))), GracePeriodSeconds: ptr.To[int32](3600),
		}}
	})
	return f
}

// TestAMoveWhileAnEditIsHeldBack: the new cluster gets what the old one runs, and not the edit; once it is healthy there, the old copy
// goes.
func TestAMoveWhileAnEditIsHeldBack(t *testing.T) {
	f := movedWhileHeld(t, policyv1alpha1.PurgeModeGracefully)
	eventually(f, "images", map[string]string{"a": "2x1", "b": "2x1"}, func() map[string]string { return f.images("web") })
	f.awaitIdle()
	f.arrive("web", "b")
	eventually(f, "images", map[string]string{"b": "2x1"}, func() map[string]string { return f.images("web") })
	eventually(f, "tasks", 0, func() int { return len(f.binding("Deployment", "web").Spec.GracefulEvictionTasks) })
	if events := f.events.reasons(); events["Deployment SyncWorkFailed"] > 0 {
		f.Errorf("events %q", f.events.all())
	}
}

// TestWhatHasToGoFirstStaysWhileAnEditIsHeldBack: gone, it could not be made anew. Why it stays is said.
func TestWhatHasToGoFirstStaysWhileAnEditIsHeldBack(t *testing.T) {
	f := movedWhileHeld(t, policyv1alpha1.PurgeModeDirectly)
	want := "cluster " + f.cluster("b") + ": the template's latest edit is held back, and what it moves to does not get the version before: " +
		f.cluster("a") + " alone has it, and would have to be left first (failover.cluster.purgeMode: Directly)"
	eventually(f, "events", true, func() bool { return slices.Contains(f.events.all(), "Deployment SyncWorkFailed: "+want) })
	f.awaitIdle()
	if diff := cmp.Diff(map[string]string{"a": "2x1"}, f.images("web")); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

// TestAMoveEndsWhileDispatchingIsSuspended: what is kept from a cluster does not change that its copy is well.
func TestAMoveEndsWhileDispatchingIsSuspended(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.create(f.policy("p", deployments("web")), f.deployment("web"))
	f.arrive("web", "a")
	f.arrive("web", "b")
	edit(f, f.member("a"), func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: "drill", Effect: corev1.TaintEffectNoExecute})
	})
	policy := f.policy("p")
	edit(f, policy, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Suspension = &policyv1alpha1.Suspension{Dispatching: ptr.To(true)}
	})
	edit(f, f.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "registry.example/web:2" })
	f.awaitIdle()
	edit(f, f.binding("Deployment", "web"), func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: f.cluster("b"), Replicas: 2}}
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: f.cluster("a"), Reason: "TaintUntolerated", Producer: "TaintManager", GracePeriodSeconds: ptr.To[int32](3600)}}
	})
	eventually(f, "images", map[string]string{"b": "2x2"}, func() map[string]string { return f.images("web") })
}
