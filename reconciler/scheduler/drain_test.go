package scheduler_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
)

// TestAQuotaKeepsNothingInADrainedCluster: a template that may not have more replicas, as its quota is used up, leaves
// a drained cluster with those that it has: the server accepts that, and the rest waits until the quota is raised.
func TestAQuotaKeepsNothingInADrainedCluster(t *testing.T) {
	env := shared.Env(t)
	w := world{t, env.Hub}
	defer loops(t, env)()
	for _, name := range []string{"q1", "q2"} {
		w.cluster(name, 9, "silver")
		c := &clusterv1alpha1.Cluster{}
		w.do(env.Hub.Get(t.Context(), client.ObjectKey{Name: name}, c))
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: clusterv1alpha1.ClusterReadyReason, LastTransitionTime: metav1.Now()}}
		w.do(env.Hub.Status().Update(t.Context(), c))
	}
	patch := func(obj client.Object, text string) {
		t.Helper()
		w.do(env.Hub.Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(text))))
	}
	quota := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "team"}}
	quota.Spec.Overall = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	w.do(env.Hub.Create(t.Context(), quota))
	in := func(names ...string) func(*workv1alpha2.ResourceBinding) {
		return func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: names}
		}
	}
	w.binding("drained", 2, in("q1"))
	w.await("drained", "{q1:2} Success")
	b := &workv1alpha2.ResourceBinding{}
	b.Namespace, b.Name = "default", "drained-deployment"
	patch(b, `{"spec":{"replicas":3}}`)
	w.await("drained", "{q1:2} QuotaExceeded")
	c := &clusterv1alpha1.Cluster{}
	w.do(env.Hub.Get(t.Context(), client.ObjectKey{Name: "q1"}, c))
	c.Spec.Taints = []corev1.Taint{failover.DrainTaint()}
	w.do(env.Hub.Update(t.Context(), c))
	patch(b, `{"spec":{"placement":{"clusterAffinity":{"clusterNames":["q1","q2"]}}}}`)
	w.await("drained", "{q2:2} QuotaExceeded")
	w.do(env.Hub.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	if tasks := b.Spec.GracefulEvictionTasks; len(tasks) != 1 || tasks[0].FromCluster != "q1" || tasks[0].Producer != workv1alpha2.EvictionProducerDrain {
		t.Errorf("it leaves as %+v", tasks)
	}
	patch(quota, `{"spec":{"overall":{"cpu":"3"}}}`)
	w.await("drained", "{q2:3} Success")
}
