package binding_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

func TestOverrideTouchesItsOwn(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.create(f.policy("all", deployments("")), f.deployment("web"), f.deployment("api"))
	plain := map[string]string{"a": "2x1", "b": "2x1"}
	for _, name := range []string{"web", "api"} {
		eventually(f, "images of "+name, plain, func() map[string]string { return f.images(name) })
	}
	f.awaitIdle()

	tag := f.imageTag("tag", "web", "2", "a")
	f.create(tag)
	eventually(f, "images", map[string]string{"a": "2x2", "b": "2x1"}, func() map[string]string { return f.images("web") })
	f.wrote("an override for one cluster", map[string]int{"PATCH works": 1})

	edit(f, tag, func(o *policyv1alpha1.OverridePolicy) {
		o.Spec.OverrideRules[0].TargetCluster = &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "canary"}}}
	})
	eventually(f, "images", plain, func() map[string]string { return f.images("web") })
	f.wrote("an override for labels that no cluster has", map[string]int{"PATCH works": 1})
	if w := f.works("Deployment", "web")["a"]; w.Annotations[policyv1alpha1.AppliedOverrides] != "" {
		t.Errorf("the record of the override stays: %v", w.Annotations)
	}

	edit(f, f.member("b"), func(c *clusterv1alpha1.Cluster) { c.Labels["tier"] = "canary" })
	eventually(f, "images", map[string]string{"a": "2x1", "b": "2x2"}, func() map[string]string { return f.images("web") })
	f.wrote("a cluster that an override picks from now on", map[string]int{"PATCH works": 1})

	edit(f, tag, func(o *policyv1alpha1.OverridePolicy) {
		o.Spec.OverrideRules[0].Overriders = policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "/spec/missing/field", Operator: policyv1alpha1.OverriderOpRemove}}}
	})
	eventually(f, "event", 1, func() int { return f.events.reasons()["Deployment ApplyOverridePolicyFailed"] })
	f.wrote("an override whose path is missing", map[string]int{"PATCH works": 1})
	for _, e := range f.events.all() {
		if strings.Contains(e, "ApplyOverridePolicyFailed") && !(strings.Contains(e, f.ns+"/tag") && strings.Contains(e, "/spec/missing/field")) {
			t.Errorf("event names neither policy nor path: %s", e)
		}
	}

	f.check(f.env.Hub.Delete(f.Context(), tag))
	eventually(f, "images", plain, func() map[string]string { return f.images("web") })
	f.wrote("no override any more", map[string]int{"PATCH works": 1})
}

func (f *fleet) member(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: f.cluster(name)}}
}

// says writes whether a cluster is ready into its condition.
func (f *fleet) says(name string, ready metav1.ConditionStatus) {
	f.Helper()
	c := f.member(name)
	f.check(f.env.Hub.Get(f.Context(), client.ObjectKeyFromObject(c), c))
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: ready, Reason: "Test"})
	f.check(f.env.Hub.Status().Update(f.Context(), c))
}

func TestClustersComeAndGo(t *testing.T) {
	f := newFleet(t, "a", "b")
	policy := f.policy("all", deployments("web"))
	f.create(policy, f.deployment("web"))
	eventually(f, "images", map[string]string{"a": "2x1", "b": "2x1"}, func() map[string]string { return f.images("web") })
	f.awaitIdle()

	edit(f, f.member("b"), func(c *clusterv1alpha1.Cluster) { c.Labels["fleet"] = "none" })
	f.wrote("a cluster that no longer fits, while the other has not got it", map[string]int{"PATCH resourcebindings": 1})
	f.says("a", metav1.ConditionUnknown)
	// Wait until the loops have seen the Cluster, as Clusters and Works have separate watches.
	f.wrote("nobody hears of the other", map[string]int{})
	f.arrive("web", "a")
	f.wrote("the other had it when it was last heard of", map[string]int{})
	f.says("a", metav1.ConditionTrue)
	eventually(f, "images", map[string]string{"a": "2x1"}, func() map[string]string { return f.images("web") })
	f.wrote("it runs in the other", map[string]int{"PATCH resourcebindings": 1, "DELETE works": 1})

	f.join("c", nil)
	eventually(f, "images", map[string]string{"a": "2x1", "c": "2x1"}, func() map[string]string { return f.images("web") })

	edit(f, policy, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{f.cluster("a")}}
	})
	eventually(f, "images", map[string]string{"a": "2x1"}, func() map[string]string { return f.images("web") })
	f.awaitIdle()

	// The cluster looks unsuitable: its APIs are unknown and it is tainted. What
	// runs there stays.
	sick := f.member("a")
	f.check(f.env.Hub.Get(f.Context(), client.ObjectKeyFromObject(sick), sick))
	sick.Status.APIEnablements = nil
	f.check(f.env.Hub.Status().Update(f.Context(), sick))
	edit(f, sick, func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = append(c.Spec.Taints, taint(clusterv1alpha1.TaintClusterNotReady))
	})
	f.wrote("a cluster that looks unsuitable", map[string]int{})
	edit(f, sick, func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = nil })
	sick.Status.APIEnablements = apis()
	f.check(f.env.Hub.Status().Update(f.Context(), sick))
	f.awaitIdle()

	edit(f, policy, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Placement.ClusterAffinity.ClusterNames = []string{"nowhere"}
	})
	eventually(f, "event", 1, func() int { return f.events.reasons()["Deployment ScheduleBindingFailed"] })
	f.wrote("a policy that no cluster fits", map[string]int{
		"PATCH propagationpolicies/status": 1, "PATCH resourcebindings": 1,
	})
	eventually(f, "images", map[string]string{"a": "2x1"}, func() map[string]string { return f.images("web") })
}

// TestNoClusterIsLeftForWhatWasReportedBeforeAStart: while the loops were down, the cluster
// that stays may have lost what its Work reports.
func TestNoClusterIsLeftForWhatWasReportedBeforeAStart(t *testing.T) {
	f := newFleet(t, "a", "b")
	policy := f.policy("all", deployments("web"))
	f.create(policy, f.deployment("web"))
	both := map[string]string{"a": "2x1", "b": "2x1"}
	eventually(f, "images", both, func() map[string]string { return f.images("web") })
	f.arrive("web", "a")
	f.arrive("web", "b")
	f.stop()
	edit(f, policy, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{f.cluster("a")}}
	})

	f.staleFor = time.Hour
	f.start()
	eventually(f, "eviction tasks", 1, func() int { return len(f.binding("Deployment", "web").Spec.GracefulEvictionTasks) })
	f.awaitIdle()
	if diff := cmp.Diff(both, f.images("web")); diff != "" {
		t.Fatalf("a cluster was left on the strength of an old word (-want +got):\n%s", diff)
	}
	f.fall("web", "a")
	f.arrive("web", "a")
	one := map[string]string{"a": "2x1"}
	eventually(f, "images once the other has said so again", one, func() map[string]string { return f.images("web") })

	f.stop()
	edit(f, policy, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{f.cluster("a"), f.cluster("b")}}
	})
	f.start()
	eventually(f, "images", both, func() map[string]string { return f.images("web") })
	f.arrive("web", "b")
	f.stop()
	edit(f, policy, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{f.cluster("a")}}
	})
	f.staleFor = time.Second
	f.start()
	eventually(f, "images once the time is over", one, func() map[string]string { return f.images("web") })
}

// TestNoClusterIsLeftForWhatWasReportedBeforeItsMemberWasBack: while a member was unreachable,
// or its agent was down, it may have lost what its Work reports.
func TestNoClusterIsLeftForWhatWasReportedBeforeItsMemberWasBack(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.stop()
	f.staleFor = time.Hour
	f.start()
	policy := f.policy("all", deployments("web"))
	f.create(policy, f.deployment("web"))
	both := map[string]string{"a": "2x1", "b": "2x1"}
	eventually(f, "images", both, func() map[string]string { return f.images("web") })
	f.arrive("web", "a")
	f.awaitIdle()
	f.back.Store(ptr.To(time.Now()))
	edit(f, policy, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{f.cluster("a")}}
	})
	eventually(f, "eviction tasks", 1, func() int { return len(f.binding("Deployment", "web").Spec.GracefulEvictionTasks) })
	f.awaitIdle()
	if diff := cmp.Diff(both, f.images("web")); diff != "" {
		t.Fatalf("a cluster was left on the strength of an old word (-want +got):\n%s", diff)
	}
	f.fall("web", "a")
	f.arrive("web", "a")
	eventually(f, "images once the other has said so again", map[string]string{"a": "2x1"}, func() map[string]string { return f.images("web") })
	record, _ := placement.RecordOf(f.binding("Deployment", "web"))
	if m := record.LastMove; m == nil || m.Ended == nil || !slices.Equal(m.From, []string{f.cluster("b")}) || m.Why != placement.DuePlacementChanged {
		t.Errorf("the move that has ended: %+v", m)
	}
}

// TestNoClusterIsLeftForOneThatDoesNotAnswer: after a cluster is lost, its Cluster is still ready for a while,
// and its Works healthy.
func TestNoClusterIsLeftForOneThatDoesNotAnswer(t *testing.T) {
	f := newFleet(t, "a", "b")
	policy := f.policy("all", deployments("web"))
	f.create(policy, f.deployment("web"))
	both := map[string]string{"a": "2x1", "b": "2x1"}
	eventually(f, "images", both, func() map[string]string { return f.images("web") })
	f.arrive("web", "a")
	f.away.Store(true)
	edit(f, policy, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{f.cluster("a")}}
	})
	eventually(f, "eviction tasks", 1, func() int { return len(f.binding("Deployment", "web").Spec.GracefulEvictionTasks) })
	f.awaitIdle()
	if diff := cmp.Diff(both, f.images("web")); diff != "" {
		t.Fatalf("a cluster was left for one that does not answer (-want +got):\n%s", diff)
	}
	f.away.Store(false)
	eventually(f, "images", map[string]string{"a": "2x1"}, func() map[string]string { return f.images("web") })
}

// TestNoClusterIsLeftForOneThatHasNothing: the Work reports that all is well, since
// no watch has shown the loss; a read from the cluster itself does.
func TestNoClusterIsLeftForOneThatHasNothing(t *testing.T) {
	f := newFleet(t, "a", "b")
	policy := f.policy("all", deployments("web"))
	f.create(policy, f.deployment("web"))
	both := map[string]string{"a": "2x1", "b": "2x1"}
	eventually(f, "images", both, func() map[string]string { return f.images("web") })
	f.arrive("web", "a")
	f.lost.Store(true)
	edit(f, policy, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{f.cluster("a")}}
	})
	eventually(f, "eviction tasks", 1, func() int { return len(f.binding("Deployment", "web").Spec.GracefulEvictionTasks) })
	f.awaitIdle()
	if diff := cmp.Diff(both, f.images("web")); diff != "" {
		t.Fatalf("a cluster was left for one that has nothing (-want +got):\n%s", diff)
	}
	f.lost.Store(false)
	eventually(f, "images", map[string]string{"a": "2x1"}, func() map[string]string { return f.images("web") })
}

// TestTwoClustersAreLeftForOne: the cluster that stays is asked once in a pass, however many are left for it: an
// answer counts only for a question before it, and a second question would have none yet.
func TestTwoClustersAreLeftForOne(t *testing.T) {
	f := newFleet(t, "a", "b", "c")
	policy := f.policy("all", deployments("web"))
	f.create(policy, f.deployment("web"))
	eventually(f, "images", map[string]string{"a": "2x1", "b": "2x1", "c": "2x1"}, func() map[string]string { return f.images("web") })
	f.arrive("web", "a")
	edit(f, policy, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{f.cluster("a")}}
	})
	eventually(f, "images", map[string]string{"a": "2x1"}, func() map[string]string { return f.images("web") })
}

func TestForeignEdits(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.create(f.policy("all", deployments("web")), f.deployment("web"))
	want := map[string]string{"a": "2x1", "b": "2x1"}
	eventually(f, "images", want, func() map[string]string { return f.images("web") })
	f.awaitIdle()

	work := f.works("Deployment", "web")["a"]
	edit(f, &work, func(w *workv1alpha1.Work) {
		w.Spec.Workload.Manifests[0].Raw = json.RawMessage(strings.Replace(string(w.Spec.Workload.Manifests[0].Raw), "web:1", "web:evil", 1))
	})
	eventually(f, "images", want, func() map[string]string { return f.images("web") })
	f.wrote("a Work that somebody edited", map[string]int{"PATCH works": 1})

	edit(f, &work, func(w *workv1alpha1.Work) { w.Finalizers = nil })
	f.wrote("a Work without its finalizer", map[string]int{"PATCH works": 1})

	b := f.binding("Deployment", "web")
	edit(f, b, func(b *workv1alpha2.ResourceBinding) { b.Finalizers, b.OwnerReferences = nil, nil })
	f.wrote("a binding without finalizer and owner", map[string]int{"PATCH resourcebindings": 1})
	if b := f.binding("Deployment", "web"); len(b.Finalizers) != 1 || len(b.OwnerReferences) != 1 {
		t.Errorf("finalizers %v, owners %v; want one of each", b.Finalizers, b.OwnerReferences)
	}
	edit(f, b, func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = b.Spec.Clusters[:1] })
	eventually(f, "images", want, func() map[string]string { return f.images("web") })
	f.awaitIdle()

	edit(f, b, func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 9 })
	eventually(f, "replicas", 2, func() int { return int(f.binding("Deployment", "web").Spec.Replicas) })
	f.awaitIdle()
	if diff := cmp.Diff(want, f.images("web")); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

func TestEvictionsAndSuspension(t *testing.T) {
	f := newFleet(t, "a", "b")
	policy := f.policy("all", deployments("web"))
	policy.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{f.cluster("a"), f.cluster("b")}}
	f.create(policy, f.deployment("web"))
	both := map[string]string{"a": "2x1", "b": "2x1"}
	eventually(f, "images", both, func() map[string]string { return f.images("web") })
	f.awaitIdle()

	b := f.binding("Deployment", "web")
	edit(f, b, func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters = b.Spec.Clusters[:1]
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
			FromCluster: f.cluster("b"), PurgeMode: policyv1alpha1.PurgeModeGracefully, Reason: "Test", Producer: "test",
		}}
	})
	f.wrote("a cluster that is left gracefully", map[string]int{"PATCH resourcebindings": 1}) // the deadline
	if diff := cmp.Diff(both, f.images("web")); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}

	edit(f, policy, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Suspension = &policyv1alpha1.Suspension{Dispatching: ptr.To(true)}
	})
	eventually(f, "suspended", true, func() bool {
		w := f.works("Deployment", "web")["a"]
		return ptr.Deref(w.Spec.SuspendDispatching, false)
	})

	edit(f, b, func(b *workv1alpha2.ResourceBinding) { b.Spec.GracefulEvictionTasks = nil })
	eventually(f, "images", both, func() map[string]string { return f.images("web") })
}

func taint(key string) corev1.Taint {
	return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}
}
