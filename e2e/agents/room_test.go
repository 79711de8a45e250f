package agents

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/policies/estimate/profile"
)

// wide is a replica of two cores that goes to one cluster, where there is room.
const wide = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: wide, namespace: %[1]s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: wide}]
  placement:
    clusterAffinity: {clusterNames: [%[2]s]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference: {dynamicWeight: AvailableReplicas}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: wide, namespace: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: wide}}
  template:
    metadata: {labels: {app: wide}}
    spec:
      containers: [{name: wide, image: "wide:1", resources: {requests: {cpu: "2"}}}]
`

// TestNodesOfAPullClusterDecide has one node of a cluster in pull mode have a core left, and all
// others be cordoned: by all that the cluster reports a replica of two cores fits, and on no
// node. Once a node is not cordoned any more, it runs there.
func TestNodesOfAPullClusterDecide(t *testing.T) {
	t.Parallel()
	namespace := fleet.NameOf(t)
	s := the.site(t, fleet.Again(t, "room"))
	eventually(t, time.Minute, "the cluster is ready", the.judged(s.name, metav1.ConditionTrue))
	nodes := &corev1.NodeList{}
	if err := s.client.List(t.Context(), nodes); err != nil || len(nodes.Items) < 2 {
		t.Fatalf("there are %d nodes: %v", len(nodes.Items), err)
	}
	s.block(t, &nodes.Items[0])
	for i := range nodes.Items[1:] {
		s.cordon(t, nodes.Items[i+1].Name, true)
	}
	// The agent reports it before anything is asked.
	reported := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace(s.name), Name: "node-profile"}}
	eventually(t, time.Minute, "the agent tells of one node with a core, and of cordoned ones", func(ctx context.Context) error {
		if err := the.hub.Get(ctx, client.ObjectKeyFromObject(reported), reported); err != nil {
			return err
		}
		p, err := profile.Decode([]byte(reported.Data["profile"]))
		if err != nil {
			return err
		}
		if len(p.Kinds) != 2 || len(p.Kinds[0].Taints)+len(p.Kinds[1].Taints) == 0 || !strings.Contains(reported.Data["profile"], `"rows":[[1,1000,`) {
			return fmt.Errorf("it tells %s", reported.Data["profile"])
		}
		return nil
	})

	the.Apply(t, fmt.Sprintf(wide, namespace, s.name))
	decided := func(reason string, clusters int) func(context.Context) error {
		return func(ctx context.Context) error {
			b := &workv1alpha2.ResourceBinding{}
			if err := the.hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: workv1alpha2.BindingName("Deployment", "wide")}, b); err != nil {
				return err
			}
			for _, c := range b.Status.Conditions {
				if c.Type == workv1alpha2.Scheduled && c.Reason == reason && len(b.Spec.Clusters) == clusters {
					return nil
				}
			}
			return fmt.Errorf("clusters %v, conditions %+v", b.Spec.Clusters, b.Status.Conditions)
		}
	}
	// Nothing shows what the control plane has read of that: what was decided by what was
	// told before is asked for anew.
	eventually(t, time.Minute, "no node has room for it", func(ctx context.Context) error {
		if decided(workv1alpha2.BindingReasonSuccess, 1)(ctx) == nil {
			the.renew(t, namespace, fmt.Sprintf(wide, namespace, s.name))
		}
		return decided(workv1alpha2.BindingReasonUnschedulable, 0)(ctx)
	})
	s.cordon(t, nodes.Items[1].Name, false)
	eventually(t, time.Minute, "a node has room for it", decided(workv1alpha2.BindingReasonSuccess, 1))
	eventually(t, time.Minute, "it runs", s.runs(namespace))
}

// renew has the Deployment, and what was decided about it, be gone, and applies it anew.
func (w *world) renew(t *testing.T, namespace, manifests string) {
	t.Helper()
	w.Kubectl(t, "", "delete", "deployment/wide", "--namespace", namespace)
	eventually(t, time.Minute, "it is not asked for any more", func(ctx context.Context) error {
		var bindings workv1alpha2.ResourceBindingList
		if err := w.hub.List(ctx, &bindings, client.InNamespace(namespace)); err != nil || len(bindings.Items) > 0 {
			return fmt.Errorf("there are %d bindings: %v", len(bindings.Items), err)
		}
		return nil
	})
	w.Kubectl(t, manifests, "apply", "-f", "-")
}

// block has a node of the member run a pod that leaves one core.
func (s *site) block(t *testing.T, node *corev1.Node) {
	t.Helper()
	left := node.Status.Allocatable[corev1.ResourceCPU].DeepCopy()
	left.Sub(resource.MustParse("1"))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "blocks-" + node.Name},
		Spec: corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{
			Name: "blocks", Image: "blocks:1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: left}},
		}}},
	}
	if err := s.client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// cordon has a node of the member take no pods any more, or take them again.
func (s *site) cordon(t *testing.T, name string, on bool) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := s.client.Patch(t.Context(), node, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, on))); err != nil {
		t.Fatal(err)
	}
}

// runs is nil once the member runs the one replica.
func (s *site) runs(namespace string) func(context.Context) error {
	return func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := s.client.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{"app": "wide"}); err != nil {
			return err
		}
		if len(pods.Items) != 1 || pods.Items[0].Status.Phase != corev1.PodRunning {
			return fmt.Errorf("%d pods", len(pods.Items))
		}
		return nil
	}
}
