package binding_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// tells writes why a cluster is not ready into its condition.
func (f *fleet) reports(name, reason string) {
	f.Helper()
	c := f.member(name)
	f.check(f.env.Hub.Get(f.Context(), client.ObjectKeyFromObject(c), c))
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: reason})
	f.check(f.env.Hub.Status().Update(f.Context(), c))
}

// serving reports, as a cluster would, that the Deployment is not healthy, and how much of it is ready.
func (f *fleet) serving(name, cluster, status string) {
	f.Helper()
	w := f.works("Deployment", name)[cluster]
	w.Status.ManifestStatuses[0].Health = workv1alpha1.ResourceUnhealthy
	w.Status.ManifestStatuses[0].Status = &runtime.RawExtension{Raw: []byte(status)}
	f.check(f.env.Hub.Status().Update(f.Context(), &w))
}

// leaving returns a fleet in which "web" runs in a, is placed in b, where it never becomes healthy, and the
// grace period for a is over.
func leaving(t *testing.T) *fleet {
	f := newFleet(t, "a", "b")
	f.create(f.policy("all", deployments("web")), f.deployment("web"))
	eventually(f, "images", map[string]string{"a": "2x1", "b": "2x1"}, func() map[string]string { return f.images("web") })
	f.arrive("web", "a")
	f.arrive("web", "b")
	f.serving("web", "b", `{"replicas":2}`)
	f.awaitIdle()
	edit(f, f.member("a"), func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: "drill", Effect: corev1.TaintEffectNoExecute})
	})
	f.awaitIdle() // a scheduler that does not know of the taint yet would take the cluster back
	edit(f, f.binding("Deployment", "web"), func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters = b.Spec.Clusters[1:]
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
			FromCluster: f.cluster("a"), PurgeMode: policyv1alpha1.PurgeModeGracefully, Reason: "TaintUntolerated", Producer: "TaintManager",
			Message: "untolerated taint {drill:NoExecute}", CreationTimestamp: ptr.To(metav1.NewTime(time.Now().Add(-time.Hour))),
		}}
	})
	f.stays("its time is over")
	return f
}

// stays checks that the copy in a is there once nothing is written any more.
func (f *fleet) stays(when string) {
	f.Helper()
	f.awaitIdle()
	b := f.binding("Deployment", "web")
	if _, there := f.images("web")["a"]; !there || len(b.Spec.GracefulEvictionTasks) != 1 {
		f.Fatalf("%s: runs in %v, leaves %v; events %q", when, f.images("web"), b.Spec.GracefulEvictionTasks, f.events.all())
	}
}

// left checks that the copy in a is removed, and that the event reports the truth about b.
func (f *fleet) left(well string) {
	f.Helper()
	eventually(f, "images", map[string]string{"b": "2x1"}, func() map[string]string { return f.images("web") })
	if b := f.binding("Deployment", "web"); len(b.Spec.GracefulEvictionTasks) > 0 {
		f.Errorf("leaves %v", b.Spec.GracefulEvictionTasks)
	}
	want := fmt.Sprintf("Deployment EvictWorkloadFromClusterSucceed: Left cluster %s (untolerated taint {drill:NoExecute}) for {%s:2}%s", f.cluster("a"), f.cluster("b"), well)
	if events := f.events.all(); !slices.Contains(events, want) {
		f.Errorf("%q is not in %q", want, events)
	}
}

// touches starts a pass over the binding without a change that matters.
func (f *fleet) touches() {
	f.Helper()
	edit(f, f.binding("Deployment", "web"), func(b *workv1alpha2.ResourceBinding) {
		b.Spec.RescheduleTriggeredAt = ptr.To(metav1.Now())
	})
}

// TestTheLastCopyIsNotLeftInSilence: a cluster that is silent, or has only just begun to answer again,
// keeps the copy that was healthy there, whatever its statuses report. Once it is reachable again, they count.
func TestTheLastCopyIsNotLeftInSilence(t *testing.T) {
	f := leaving(t)
	f.reports("a", clusterv1alpha1.ClusterNotReachableReason)
	f.stays("it is not reachable")
	f.touches()
	f.stays("somebody wants it to be placed anew")
	edit(f, f.deployment("web"), func(d *appsv1.Deployment) { d.Labels = map[string]string{"touched": "yes"} })
	f.stays("the template has another label")
	f.stop()
	f.start()
	f.stays("the loops have started again")
	f.reports("a", clusterv1alpha1.ClusterAnswersAgainReason)
	f.stays("it answers again")
	f.serving("web", "a", `{"replicas":2}`)
	f.touches()
	f.stays("it answers again, and nothing is ready there yet")
	f.reports("a", clusterv1alpha1.ClusterNotReachableReason)
	f.touches()
	f.stays("and is gone once more")
	f.serving("web", "a", `{"replicas":2,"readyReplicas":1}`)
	f.says("a", metav1.ConditionTrue)
	f.touches()
	f.stays("it is there, and one of two is ready")
	f.serving("web", "a", `{"replicas":2}`)
	f.left(", where it is not healthy yet")
}

// TestTheLastCopyIsNotLeftWhileItServesInPart: one of two replicas is more than none elsewhere.
func TestTheLastCopyIsNotLeftWhileItServesInPart(t *testing.T) {
	f := leaving(t)
	f.serving("web", "a", `{"replicas":2,"readyReplicas":1,"unavailableReplicas":1}`)
	f.touches()
	f.stays("one of two is ready")
	f.arrive("web", "b")
	f.left("")
}

// TestTheLastCopyIsNotLeftForWhatWasReportedBeforeAStart: a copy that served nobody when the loops stopped may be healthy
// by now.
func TestTheLastCopyIsNotLeftForWhatWasReportedBeforeAStart(t *testing.T) {
	f := leaving(t)
	f.stop()
	f.serving("web", "a", `{"replicas":2}`)
	f.staleFor = time.Hour
	f.start()
	f.touches()
	f.stays("nobody has looked since")
	f.serving("web", "a", `{"replicas":2,"readyReplicas":1}`)
	f.stays("it has recovered in part")
	f.serving("web", "a", `{"replicas":2}`)
	f.left(", where it is not healthy yet")
}

// TestWhatServesNobodyIsLeftAsSoonAsItIsHeardOf: the report alone starts the pass.
func TestWhatServesNobodyIsLeftAsSoonAsItIsHeardOf(t *testing.T) {
	f := leaving(t)
	f.reports("a", clusterv1alpha1.ClusterNotReachableReason)
	f.serving("web", "a", `{"replicas":2}`)
	f.stays("it is not reachable")
	f.says("a", metav1.ConditionTrue)
	f.left(", where it is not healthy yet")
}

// TestAClusterThatIsAwayIsLeftOnceItIsBack: a removal that waits for a silent cluster would be carried out when that is
// back, even if the other cluster has lost its copy by then.
func TestAClusterThatIsAwayIsLeftOnceItIsBack(t *testing.T) {
	f := leaving(t)
	f.reports("a", clusterv1alpha1.ClusterNotReachableReason)
	f.arrive("web", "b")
	f.stays("b has it, and a is away")
	f.stop()
	f.start()
	f.stays("the loops have started again")
	f.reports("b", clusterv1alpha1.ClusterNotReachableReason)
	f.stays("both are away")
	f.says("a", metav1.ConditionTrue)
	f.stays("a is back, and has the only copy that is heard of")
	f.reports("a", clusterv1alpha1.ClusterStatusUnknownReason)
	f.says("b", metav1.ConditionTrue)
	f.stays("b is back, and a is away again")
	f.says("a", metav1.ConditionTrue)
	f.left("")
}

// TestWhoDeletesWaitsForNobody: a deleted template is removed from each cluster as soon as that is reachable.
func TestWhoDeletesWaitsForNobody(t *testing.T) {
	f := leaving(t)
	f.reports("a", clusterv1alpha1.ClusterNotReachableReason)
	f.arrive("web", "b")
	f.stays("b has it, and a is away")
	f.check(f.env.Hub.Delete(f.Context(), f.deployment("web")))
	eventually(f, "images", map[string]string{}, func() map[string]string { return f.images("web") })
}

// TestWhatHasToGoFirstWaitsForAPlaceToGoTo: if two copies must never run at once, the running one is removed when its
// cluster and the next one are reachable, and neither before nor for a cluster that was lost meanwhile.
func TestWhatHasToGoFirstWaitsForAPlaceToGoTo(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.create(f.policy("all", deployments("web")), f.deployment("web"))
	eventually(f, "images", map[string]string{"a": "2x1", "b": "2x1"}, func() map[string]string { return f.images("web") })
	edit(f, f.member("b"), func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: "drill", Effect: corev1.TaintEffectNoExecute})
	})
	f.awaitIdle() // a scheduler that does not know of the taint yet would take the cluster back
	edit(f, f.binding("Deployment", "web"), func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = b.Spec.Clusters[:1] })
	eventually(f, "images", map[string]string{"a": "2x1"}, func() map[string]string { return f.images("web") })
	f.reports("a", clusterv1alpha1.ClusterNotReachableReason)
	edit(f, f.member("b"), func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = nil })
	edit(f, f.member("a"), func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: "drill", Effect: corev1.TaintEffectNoExecute})
	})
	f.awaitIdle() // a scheduler that does not know of the taint yet would take the cluster back
	edit(f, f.binding("Deployment", "web"), func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters[0].Name = f.cluster("b")
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
			FromCluster: f.cluster("a"), PurgeMode: policyv1alpha1.PurgeModeDirectly, Reason: "TaintUntolerated", Producer: "TaintManager",
			Message: "untolerated taint {drill:NoExecute}", CreationTimestamp: ptr.To(metav1.Now()),
		}}
	})
	f.stays("a is away")
	f.reports("b", clusterv1alpha1.ClusterNotReachableReason)
	f.says("a", metav1.ConditionTrue)
	f.stays("a is back, and b is away")
	f.says("b", metav1.ConditionTrue)
	eventually(f, "images", map[string]string{"b": "2x1"}, func() map[string]string { return f.images("web") })
}
