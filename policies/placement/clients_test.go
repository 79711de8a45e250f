package placement_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// taintManager are the rules of a fleet whose taints move what runs.
var taintManager = placement.Options{Failover: failover.Rules{Taints: true, State: true}}

// TestTasksThatClientsOfKarmadaRead are those of a cluster that failed, with all that is in them: a grace is never, and where
// it ran before only where state goes along, so that no copy that runs there already takes it.
func TestTasksThatClientsOfKarmadaRead(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	settings := func() *workv1alpha2.ResourceBindingSpec {
		return &workv1alpha2.ResourceBindingSpec{
			Resource:  workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings"},
			Placement: &policyv1alpha1.Placement{SpreadConstraints: oneCluster()},
		}
	}
	web := func() *workv1alpha2.ResourceBindingSpec {
		return deployment(2, policyv1alpha1.Placement{SpreadConstraints: oneCluster()})
	}
	says := func(purge policyv1alpha1.PurgeMode, rules ...policyv1alpha1.StatePreservationRule) *policyv1alpha1.FailoverBehavior {
		out := &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{PurgeMode: purge}}
		if len(rules) > 0 {
			out.Cluster.StatePreservation = &policyv1alpha1.StatePreservation{Rules: rules}
		}
		return out
	}
	gracefully, directly := policyv1alpha1.PurgeModeGracefully, policyv1alpha1.PurgeModeDirectly
	cases := map[string]struct {
		spec     func() *workv1alpha2.ResourceBindingSpec
		failover *policyv1alpha1.FailoverBehavior
		flag     policyv1alpha1.PurgeMode
		want     workv1alpha2.GracefulEvictionTask // but for what all have
	}{
		"neither policy nor flag says how":         {spec: web, want: workv1alpha2.GracefulEvictionTask{PurgeMode: gracefully, Replicas: ptr.To[int32](2)}},
		"the flag says how":                        {spec: web, flag: directly, want: workv1alpha2.GracefulEvictionTask{PurgeMode: directly, Replicas: ptr.To[int32](2)}},
		"the policy goes before the flag":          {spec: web, failover: says(gracefully), flag: directly, want: workv1alpha2.GracefulEvictionTask{PurgeMode: gracefully, Replicas: ptr.To[int32](2)}},
		"a policy of applications alone":           {spec: web, failover: &policyv1alpha1.FailoverBehavior{}, flag: directly, want: workv1alpha2.GracefulEvictionTask{PurgeMode: directly, Replicas: ptr.To[int32](2)}},
		"what has no replicas says nothing of any": {spec: settings, want: workv1alpha2.GracefulEvictionTask{PurgeMode: gracefully}},
		"state goes along": {spec: web, failover: says(directly, policyv1alpha1.StatePreservationRule{AliasLabelName: "app.io/count", JSONPath: "{.replicas}"}),
			want: workv1alpha2.GracefulEvictionTask{PurgeMode: directly, Replicas: ptr.To[int32](2), PreservedLabelState: map[string]string{"app.io/count": "2"}, ClustersBeforeFailover: []string{"a"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec, was := tc.spec(), "a:2"
			if spec.Replicas == 0 {
				was = "a:0"
			}
			b := placedOn(t, spec, "a:9 b:9", was, now)
			b.Spec.Failover = tc.failover
			b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "a", Status: &runtime.RawExtension{Raw: []byte(`{"replicas":2}`)}}}
			opts := taintManager
			opts.Failover.Purge = tc.flag
			d, changed := placement.Decide(b, placement.Situation{Clusters: evictFleet("a:9 b:9", "a", now), Now: now}, opts)
			if !changed || len(d.Clusters) != 1 || d.Clusters[0].Name != "b" {
				t.Fatalf("changed: %t, placed in %v", changed, d.Clusters)
			}
			tc.want.FromCluster, tc.want.Reason, tc.want.Producer = "a", "TaintUntolerated", "TaintManager"
			tc.want.Message, tc.want.CreationTimestamp = "untolerated taint {drill:NoExecute}", ptr.To(metav1.NewTime(now))
			if diff := cmp.Diff([]workv1alpha2.GracefulEvictionTask{tc.want}, d.Evictions); diff != "" {
				t.Errorf("tasks (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnAppliedPlacementThatIsMissing tolerates what the placement of the spec tolerates: Karmada's taint manager moves what
// does not have the annotation, or one that it cannot read, at once.
func TestAnAppliedPlacementThatIsMissing(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	tolerant := policyv1alpha1.Placement{SpreadConstraints: oneCluster(), ClusterTolerations: []corev1.Toleration{
		{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](30)}}}
	for name, spoil := range map[string]func(*workv1alpha2.ResourceBinding){
		"it is as it was":        func(*workv1alpha2.ResourceBinding) {},
		"there is none":          func(b *workv1alpha2.ResourceBinding) { delete(b.Annotations, policyv1alpha1.PolicyPlacementAnnotation) },
		"it cannot be read":      func(b *workv1alpha2.ResourceBinding) { b.Annotations[policyv1alpha1.PolicyPlacementAnnotation] = "{" },
		"it is empty":            func(b *workv1alpha2.ResourceBinding) { b.Annotations[policyv1alpha1.PolicyPlacementAnnotation] = "" },
		"it is none of a policy": func(b *workv1alpha2.ResourceBinding) { b.Annotations[policyv1alpha1.PolicyPlacementAnnotation] = "[]" },
	} {
		t.Run(name, func(t *testing.T) {
			for _, step := range []struct {
				ago time.Duration
				in  time.Duration // when it is looked at again
				at  string
			}{{10 * time.Second, 20 * time.Second, "{a:2}"}, {30 * time.Second, 0, "{b:2}"}} {
				b := placedOn(t, deployment(2, tolerant), "a:9 b:9", "a:2", now)
				spoil(b)
				d, changed := placement.Decide(b, placement.Situation{Clusters: evictFleet("a:9 b:9", "a", now.Add(-step.ago)), Now: now}, taintManager)
				if changed {
					d.Put(b)
				}
				var in time.Duration
				if !d.Next.IsZero() {
					in = d.Next.Sub(now)
				}
				if got := placement.Text(b.Spec.Clusters); got != step.at || in != step.in {
					t.Errorf("tainted for %s: it runs in %s and is looked at again in %s, want %s and %s", step.ago, got, in, step.at, step.in)
				}
			}
		})
	}
}

// TestWhatTaintsSkip: a binding that is being deleted is not moved any more, nor one that a cluster has only a task of.
func TestWhatTaintsSkip(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for name, edit := range map[string]func(*workv1alpha2.ResourceBinding){
		"one that is being deleted": func(b *workv1alpha2.ResourceBinding) { b.DeletionTimestamp = ptr.To(metav1.NewTime(now)) },
		"one that is being deleted, of another scheduler": func(b *workv1alpha2.ResourceBinding) {
			b.DeletionTimestamp, b.Spec.SchedulerName = ptr.To(metav1.NewTime(now)), "theirs"
		},
		"one that leaves the cluster already": func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Clusters = targets("b:2")
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
				FromCluster: "a", PurgeMode: policyv1alpha1.PurgeModeGracefully, Reason: "TaintUntolerated", Producer: "TaintManager", CreationTimestamp: ptr.To(metav1.NewTime(now)),
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := placedOn(t, deployment(2, policyv1alpha1.Placement{SpreadConstraints: oneCluster()}), "a:9 b:9", "a:2", now)
			edit(b)
			if d, changed := placement.Decide(b, placement.Situation{Clusters: evictFleet("a:9 b:9", "a", now), Now: now}, taintManager); changed {
				t.Errorf("moved to %s, with %+v", placement.Text(d.Clusters), d.Evictions)
			}
		})
	}
}

// TestStateThatComesLater: what stayed because its state was not known is moved once that is reported, and takes it along.
func TestStateThatComesLater(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	b := placedOn(t, deployment(2, policyv1alpha1.Placement{SpreadConstraints: oneCluster()}), "a:9 b:9", "a:2", now)
	b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{
		PurgeMode:         policyv1alpha1.PurgeModeDirectly,
		StatePreservation: &policyv1alpha1.StatePreservation{Rules: []policyv1alpha1.StatePreservationRule{{AliasLabelName: "app.io/id", JSONPath: "{.id}"}}},
	}}
	in := placement.Situation{Clusters: evictFleet("a:9 b:9", "a", now), Now: now}
	d, changed := placement.Decide(b, in, taintManager)
	if !changed || placement.Text(d.Clusters) != "{a:2}" || len(d.Evictions) > 0 {
		t.Fatalf("without a state: %t, %s, %+v", changed, placement.Text(d.Clusters), d.Evictions)
	}
	d.Put(b)
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "a", Status: &runtime.RawExtension{Raw: []byte(`{"id":"7"}`)}}}
	d, changed = placement.Decide(b, in, taintManager)
	if !changed || placement.Text(d.Clusters) != "{b:2}" || len(d.Evictions) != 1 || staysOf(d) != "" {
		t.Fatalf("once it is reported: %t, %s, %+v, stays: %q", changed, placement.Text(d.Clusters), d.Evictions, staysOf(d))
	}
	if diff := cmp.Diff(map[string]string{"app.io/id": "7"}, d.Evictions[0].PreservedLabelState); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

// TestTasksOfClusterScopedApplications name the controller that Karmada has for those.
func TestTasksOfClusterScopedApplications(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for namespace, want := range map[string]string{
		"shop": "resource-binding-application-failover-controller", "": "cluster-resource-binding-application-failover-controller",
	} {
		b := placedOn(t, deployment(2, policyv1alpha1.Placement{SpreadConstraints: oneCluster()}), "a:9 b:9", "a:2", now)
		b.Namespace, b.Spec.PropagateDeps = namespace, true
		b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{
			DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: ptr.To[int32](30)}, PurgeMode: policyv1alpha1.PurgeModeDirectly,
			StatePreservation: &policyv1alpha1.StatePreservation{Rules: []policyv1alpha1.StatePreservationRule{{AliasLabelName: "app.io/id", JSONPath: "{.id}"}}},
		}}
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{
			ClusterName: "a", Health: workv1alpha2.ResourceUnhealthy, UnhealthySince: ptr.To(metav1.NewTime(now.Add(-time.Minute))), Status: &runtime.RawExtension{Raw: []byte(`{"id":"7"}`)},
		}}
		d, _ := placement.Decide(b, placement.Situation{Clusters: evictFleet("a:9 b:9", "", now), Now: now}, taintManager)
		tasks := []workv1alpha2.GracefulEvictionTask{{
			FromCluster: "a", PurgeMode: policyv1alpha1.PurgeModeDirectly, Reason: "ApplicationFailure", Producer: want, Message: "an application that was unhealthy for more than 30s",
			Replicas: ptr.To[int32](2), PreservedLabelState: map[string]string{"app.io/id": "7"}, ClustersBeforeFailover: []string{"a"}, CreationTimestamp: ptr.To(metav1.NewTime(now)),
		}}
		if diff := cmp.Diff(tasks, d.Evictions); diff != "" {
			t.Errorf("in %q, tasks (-want +got):\n%s", namespace, diff)
		}
	}
}
