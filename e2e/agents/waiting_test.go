package agents

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// spread is four small replicas that go where there is room, in two clusters.
const spread = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: spread, namespace: %[1]s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: spread}]
  placement:
    clusterAffinity: {clusterNames: [%[2]s, %[3]s]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference: {dynamicWeight: AvailableReplicas}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: spread, namespace: %[1]s}
spec:
  replicas: 4
  selector: {matchLabels: {app: spread}}
  template:
    metadata: {labels: {app: spread}}
    spec:
      containers: [{name: spread, image: "spread:1", resources: {requests: {cpu: 100m}}}]
`

// TestWhatWaitsInAPullClusterRunsElsewhere has a cluster in pull mode lose the pods that ran in
// it, while its nodes take no new ones: its agent reports it, and another cluster runs them all.
func TestWhatWaitsInAPullClusterRunsElsewhere(t *testing.T) {
	t.Parallel()
	namespace := fleet.NameOf(t)
	s := the.site(t, fleet.Again(t, "waits"))
	eventually(t, time.Minute, "the cluster is ready", the.judged(s.name, metav1.ConditionTrue))
	the.Apply(t, fmt.Sprintf(spread, namespace, s.name, "west"))
	binding := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: workv1alpha2.BindingName("Deployment", "spread")}}
	eventually(t, time.Minute, "both clusters run some of it", func(ctx context.Context) error {
		if err := the.hub.Get(ctx, client.ObjectKeyFromObject(binding), binding); err != nil {
			return err
		}
		if len(binding.Spec.Clusters) != 2 {
			return fmt.Errorf("it goes to %s", placement.Text(binding.Spec.Clusters))
		}
		for _, c := range binding.Spec.Clusters {
			member := map[string]client.Client{s.name: s.client, "west": the.members["west"]}[c.Name]
			if err := pods(ctx, member, namespace, corev1.PodRunning, int(c.Replicas)); err != nil {
				return fmt.Errorf("cluster %s: %w", c.Name, err)
			}
		}
		return nil
	})

	nodes := &corev1.NodeList{}
	if err := s.client.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		s.cordon(t, nodes.Items[i].Name, true)
	}
	if err := s.client.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(namespace), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	is := &workv1alpha2.ResourceBinding{}
	eventually(t, 2*time.Minute, "the other cluster is to run all of it", func(ctx context.Context) error {
		if err := the.hub.Get(ctx, client.ObjectKeyFromObject(binding), is); err != nil {
			return err
		}
		if got := placement.Text(is.Spec.Clusters); got != "{west:4}" {
			reported := &corev1.ConfigMap{}
			err := the.hub.Get(ctx, client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(s.name), Name: "node-profile"}, reported)
			return errors.Join(fmt.Errorf("it goes to %s; what waits: %s", got, reported.Data["waiting"]), err)
		}
		return nil
	})
	if is.Generation != binding.Generation+1 || len(is.Spec.GracefulEvictionTasks) != 0 {
		t.Errorf("the binding was written %d times, want once; evictions %+v", is.Generation-binding.Generation, is.Spec.GracefulEvictionTasks)
	}
	eventually(t, time.Minute, "it runs, and nothing waits", func(ctx context.Context) error {
		return errors.Join(pods(ctx, the.members["west"], namespace, corev1.PodRunning, 4), pods(ctx, s.client, namespace, corev1.PodPending, 0))
	})
	eventually(t, time.Minute, "it is told, on the template and on the binding", func(ctx context.Context) error {
		events := &corev1.EventList{}
		if err := the.hub.List(ctx, events, client.InNamespace(namespace)); err != nil {
			return err
		}
		on := map[string]bool{}
		for _, e := range events.Items {
			if e.Reason == workv1alpha2.EventReasonDescheduleBindingSucceed {
				on[e.InvolvedObject.Kind] = true
			}
		}
		if !on["Deployment"] || !on["ResourceBinding"] {
			return fmt.Errorf("it is told on %v", on)
		}
		return nil
	})
}

// pods is nil if a member has so many pods in the namespace, in that phase each.
func pods(ctx context.Context, member client.Client, namespace string, phase corev1.PodPhase, want int) error {
	list := &corev1.PodList{}
	if err := member.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		if list.Items[i].Status.Phase != phase {
			return fmt.Errorf("pod %s is %s", list.Items[i].Name, list.Items[i].Status.Phase)
		}
	}
	if len(list.Items) != want {
		return fmt.Errorf("%d pods, want %d", len(list.Items), want)
	}
	return nil
}
