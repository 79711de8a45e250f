package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler"
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
				on[e.InvolvedObject.Kind] = e.Message
			}
		}
		message := "Binding has been descheduled, 1 replica(s) in cluster(" + from + "), 1 total descheduled replica(s)"
		if diff := cmp.Diff(map[string]string{"ResourceBinding": message, "Deployment": message}, on); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}
