package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
	"github.com/flotilla-io/flotilla/policies/estimate/profile"
	"github.com/flotilla-io/flotilla/policies/estimate/waiting"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler"
	"github.com/flotilla-io/flotilla/reconciler/descheduler"
)

// cordon has the only node of a cluster take no pods any more, or take them again.
func (m *moves) cordon(cluster string, on bool) {
	m.Helper()
	var nodes corev1.NodeList
	m.check(m.edges[cluster].List(m.Context(), &nodes))
	for i := range nodes.Items {
		m.check(retry.RetryOnConflict(retry.DefaultRetry, func() error {
			node := &corev1.Node{}
			if err := m.edges[cluster].Get(m.Context(), client.ObjectKeyFromObject(&nodes.Items[i]), node); err != nil {
				return err
			}
			node.Spec.Unschedulable = on
			return m.edges[cluster].Update(m.Context(), node)
		}))
	}
}

// divide has a Deployment of so many replicas, of half a core each, divided by room.
func (m *moves) divide(ns, name string, replicas int32) {
	m.Helper()
	labels := map[string]string{"app": name}
	m.check(m.hub.Hub.Create(m.Context(), &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: policyv1alpha1.PropagationSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: name}},
		Placement: policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
			WeightPreference: &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
		}},
	}}))
	m.check(m.hub.Hub.Create(m.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "web", Image: "web:1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}},
			}}}},
		},
	}))
}

// decided waits for a decision about a Deployment: the reason, and what runs where.
func (m *moves) decided(ns, name, want string) {
	m.Helper()
	m.eventually(name+" is decided as "+want, func() error {
		b := &workv1alpha2.ResourceBinding{}
		if err := m.hub.Hub.Get(m.Context(), client.ObjectKey{Namespace: ns, Name: workv1alpha2.BindingName("Deployment", name)}, b); err != nil {
			return err
		}
		record, _ := placement.RecordOf(b)
		if got := record.Reason + " " + placement.Text(b.Spec.Clusters); got != want {
			return fmt.Errorf("%s: %s", got, record.Message)
		}
		return nil
	})
}

// TestNodesOfMembersDecide has the sums of two clusters leave room that their nodes and
// quotas do not.
func TestNodesOfMembersDecide(t *testing.T) {
	m := newMoves(t)
	ns := m.hub.Namespace(t)
	m.cordon(from, true)
	m.divide(ns, "web", 4)
	m.decided(ns, "web", "Success {"+to+":4}")
	m.eventually("all of it runs", func() error {
		web := &appsv1.Deployment{}
		if err := m.edges[to].Get(m.Context(), client.ObjectKey{Namespace: ns, Name: "web"}, web); err != nil {
			return err
		}
		if web.Status.AvailableReplicas != 4 {
			return fmt.Errorf("%d of 4", web.Status.AvailableReplicas)
		}
		return nil
	})

	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "half"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}}
	m.check(m.edges[to].Create(m.Context(), quota))
	m.eventually("the pods count", func() error {
		if err := m.edges[to].Get(m.Context(), client.ObjectKeyFromObject(quota), quota); err != nil {
			return err
		}
		if used := quota.Status.Used[corev1.ResourceCPU]; used.String() != "2" {
			return fmt.Errorf("%s are used", used.String())
		}
		return nil
	})
	m.divide(ns, "more", 3)
	m.decided(ns, "more", "Unschedulable {}")

	m.cordon(from, false)
	m.eventually("more is placed", func() error {
		b := &workv1alpha2.ResourceBinding{}
		if err := m.hub.Hub.Get(m.Context(), client.ObjectKey{Namespace: ns, Name: workv1alpha2.BindingName("Deployment", "more")}, b); err != nil {
			return err
		}
		if record, _ := placement.RecordOf(b); !record.Succeeded() {
			return fmt.Errorf("%s: %s", record.Reason, record.Message)
		}
		return nil
	})
}

// TestReplicasThatFindNoNodeRunElsewhere has a cluster take no pods any more, and what ran
// there lost.
func TestReplicasThatFindNoNodeRunElsewhere(t *testing.T) {
	m := newMovesWith(t, func(ctx context.Context, mgr ctrl.Manager) error {
		return reconciler.Register(ctx, mgr, reconciler.Options{
			Controllers: []string{"template", "scheduler", "descheduler", "dependency", "binding", "namespace", "execution", "status", "cluster"},
			Scheduling:  reconciler.Scheduling{Descheduling: reconciler.Descheduling{Interval: 500 * time.Millisecond, Threshold: time.Second}},
		})
	})
	ns := m.hub.Namespace(t)
	m.divide(ns, "web", 4)
	m.decided(ns, "web", "Success {"+from+":2, "+to+":2}")
	pods := func(cluster string, running bool) []corev1.Pod {
		var list corev1.PodList
		m.check(m.edges[cluster].List(m.Context(), &list, client.InNamespace(ns)))
		return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return (p.Spec.NodeName != "") != running })
	}
	for _, cluster := range []string{from, to} {
		m.eventually("it runs in "+cluster, func() error {
			if n := len(pods(cluster, true)); n != 2 {
				return fmt.Errorf("%d pods of 2", n)
			}
			return nil
		})
	}
	m.cordon(from, true)
	lost := pods(from, true)[0]
	m.check(m.edges[from].Delete(m.Context(), &lost, client.GracePeriodSeconds(0)))
	m.decided(ns, "web", "Success {"+from+":1, "+to+":3}")
	m.eventually("nothing waits, and all of it runs", func() error {
		if w, a, b := len(pods(from, false)), len(pods(from, true)), len(pods(to, true)); w != 0 || a != 1 || b != 3 {
			return fmt.Errorf("%d wait, %d and %d run", w, a, b)
		}
		return nil
	})
	m.eventually("it is told of", func() error {
		var events corev1.EventList
		if err := m.hub.Hub.List(m.Context(), &events, client.InNamespace(ns)); err != nil {
			return err
		}
		on := map[string]string{}
		for _, e := range events.Items {
			if e.Reason == workv1alpha2.EventReasonDescheduleBindingSucceed {
				on[e.InvolvedObject.Kind], _, _ = strings.Cut(e.Message, ": ")
			}
		}
		message := "Binding has been descheduled, 1 replica(s) in cluster(" + from + "), 1 total descheduled replica(s)"
		if diff := cmp.Diff(map[string]string{"ResourceBinding": message, "Deployment": message}, on); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// edgeNodes is what an agent reports nodes that have so much CPU free each.
func edgeNodes(cpus ...string) map[string]string {
	x := &nodes.Index{}
	for i, cpu := range cpus {
		name := fmt.Sprint("n", i)
		x.Node(name, &nodes.Node{Name: name, Allocatable: nodes.AmountsOf(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("110")})})
	}
	return map[string]string{clusterv1alpha1.NodeProfileKey: string(profile.Of(x).Encode())}
}

// pull makes a cluster in pull mode, and has an agent report its nodes. More may be reported by
// the object that is returned.
func (m *moves) pull(name string, data map[string]string) *corev1.ConfigMap {
	m.Helper()
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	m.check(m.hub.Hub.Create(m.Context(), c))
	c.Status = clusterv1alpha1.ClusterStatus{
		APIEnablements: []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}},
		Conditions:     []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: "ClusterReady", LastTransitionTime: metav1.Now()}},
		ResourceSummary: &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("50"), corev1.ResourcePods: resource.MustParse("220")}},
	}
	m.check(m.hub.Hub.Status().Update(m.Context(), c))
	space := workv1alpha2.ExecutionNamespace(name)
	m.check(m.hub.Hub.Create(m.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}))
	reported := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: clusterv1alpha1.NodeProfileName}, Data: data}
	m.check(m.hub.Hub.Create(m.Context(), reported))
	return reported
}

// pulling starts a control plane, and loops over it later.
func pulling(t *testing.T) (m *moves, start func(reconciler.Options)) {
	if testing.Short() {
		t.Skip("runs a control plane")
	}
	m = &moves{T: t, hub: hubs.Env(t)}
	return m, func(opts reconciler.Options) {
		stop := m.hub.StartLoops(t, func(ctx context.Context, mgr ctrl.Manager) error { return reconciler.Register(ctx, mgr, opts) })
		t.Cleanup(func() { m.check(stop()) })
	}
}

// TestWhatAnAgentReportsDecides has the sum of a cluster in pull mode leave room that its nodes
// do not, until they do.
func TestWhatAnAgentReportsDecides(t *testing.T) {
	m, start := pulling(t)
	reported := m.pull("edge", edgeNodes("400m", "400m"))
	start(reconciler.Options{Controllers: []string{"template", "scheduler", "dependency"}})

	ns := m.hub.Namespace(t)
	m.divide(ns, "web", 1)
	m.decided(ns, "web", "Unschedulable {}")
	reported.Data = edgeNodes("0", "600m")
	m.check(m.hub.Hub.Update(t.Context(), reported))
	m.decided(ns, "web", "Success {edge:1}")
}

// TestWhatAnAgentReportsToWaitRunsElsewhere has an agent report that more waits for a node than there
// is, and another cluster have room for one, and later for one more: so many are moved, in one
// write each.
func TestWhatAnAgentReportsToWaitRunsElsewhere(t *testing.T) {
	m, start := pulling(t)
	reported := m.pull("edge", edgeNodes("1", "500m"))
	far := m.pull("far", edgeNodes("1", "500m"))
	start(reconciler.Options{
		Controllers: []string{"template", "scheduler", "descheduler", "dependency", "status"},
		Scheduling:  reconciler.Scheduling{Descheduling: reconciler.Descheduling{Interval: time.Hour}},
	})
	ns := m.hub.Namespace(t)
	m.divide(ns, "web", 4)
	m.decided(ns, "web", "Success {edge:2, far:2}")
	b := m.decidedLongAgo(ns, "web")

	report := func() { // that it has been so for five minutes in a moment
		since := time.Now().Add(3*time.Second - descheduler.DefaultThreshold).Unix()
		list := waiting.List{Version: waiting.Version, Workloads: []waiting.Workload{
			{Group: "apps", Kind: "Deployment", Namespace: ns, Name: "web", Rows: [][]int64{{since, 1000}}},
			{Group: "apps", Kind: "Deployment", Namespace: ns, Name: "unheard-of", Rows: [][]int64{{0, 1000}}},
		}}
		reported.Data[clusterv1alpha1.NodeProfileWaitingKey] = string(list.Encode())
		m.check(m.hub.Hub.Update(t.Context(), reported))
	}
	report()
	m.decided(ns, "web", "Success {edge:1, far:3}")
	m.decidedLongAgo(ns, "web")
	far.Data = edgeNodes("1", "1")
	m.check(m.hub.Hub.Update(t.Context(), far))
	report()
	m.decided(ns, "web", "Success {far:4}")
	is := &workv1alpha2.ResourceBinding{}
	m.check(m.hub.Hub.Get(t.Context(), client.ObjectKeyFromObject(b), is))
	if is.Generation != b.Generation+2 {
		t.Errorf("the binding was written %d times, want once for each move", is.Generation-b.Generation)
	}
}

// decidedLongAgo has it be a minute ago that it was decided where a Deployment runs.
func (m *moves) decidedLongAgo(ns, name string) *workv1alpha2.ResourceBinding {
	m.Helper()
	b := &workv1alpha2.ResourceBinding{}
	m.check(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := m.hub.Hub.Get(m.Context(), client.ObjectKey{Namespace: ns, Name: workv1alpha2.BindingName("Deployment", name)}, b); err != nil {
			return err
		}
		was, _ := placement.RecordOf(b)
		text := b.Annotations[workv1alpha2.SchedulingDecisionAnnotation]
		b.Annotations[workv1alpha2.SchedulingDecisionAnnotation] = strings.ReplaceAll(text, was.At.UTC().Format(time.RFC3339), was.At.Add(-time.Minute).UTC().Format(time.RFC3339))
		return m.hub.Hub.Update(m.Context(), b)
	}))
	return b
}
