package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

const byHand = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s, labels: {app: web}}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "nginx:1.29"}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: %[1]s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement:
    clusterAffinity: {clusterNames: [%[2]s]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        staticWeightList:
          - {targetCluster: {clusterNames: [east]}, weight: 2}
          - {targetCluster: {clusterNames: [edge, west]}, weight: 1}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: web, namespace: %[1]s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  overrideRules:
    - targetCluster: {clusterNames: [edge]}
      overriders:
        imageOverrider: [{component: Tag, operator: replace, value: 1.29-alpine}]
`

// TestByHand propagates without any Git: kubectl apply is enough.
func TestByHand(t *testing.T) {
	namespace := fleet.NameOf(t)
	the.Apply(t, fmt.Sprintf(byHand, namespace, "east, edge, west"))

	replicas := map[string]int32{"east": 2, "edge": 1, "west": 1}
	images := map[string]string{"east": "nginx:1.29", "edge": "nginx:1.29-alpine", "west": "nginx:1.29"}
	eventually(t, time.Minute, "the Deployment is ready as the policies say", the.inEveryMember(
		func(ctx context.Context, name string, member client.Client) error {
			return fleet.Deployed(namespace, "web", images[name], replicas[name])(ctx, name, member)
		}))
	eventually(t, time.Minute, "the template sums its clusters up", func(ctx context.Context) error {
		var template appsv1.Deployment
		if err := the.hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "web"}, &template); err != nil {
			return err
		}
		if s := template.Status; s.ReadyReplicas != 4 || s.Replicas != 4 || s.ObservedGeneration != template.Generation {
			return fmt.Errorf("its status is %+v at generation %d", s, template.Generation)
		}
		return nil
	})

	the.Apply(t, fmt.Sprintf(byHand, namespace, "east, west"))
	eventually(t, 30*time.Second, "a cluster that left the placement has it no more", func(ctx context.Context) error {
		return absent(ctx, the.members["edge"], &appsv1.Deployment{}, namespace, "web")
	})

	the.Kubectl(t, "", "delete", "deployment", "web", "-n", namespace)
	eventually(t, 30*time.Second, "what was deleted is gone everywhere", the.inEveryMember(
		func(ctx context.Context, _ string, member client.Client) error {
			return absent(ctx, member, &appsv1.Deployment{}, namespace, "web")
		}))

	// The policy is known by now: what it selects says so from its first moment.
	labels := map[string]string{"app": "web"}
	again := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:1.29"}}},
		},
	}}
	if err := the.hub.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if policy, ok := propagation.Claimed(again); !ok || policy.Name != "web" {
		t.Errorf("a new template is claimed by %q, want web", policy)
	}
}

// TestDriftInAMember takes back what somebody changed or deleted by hand.
func TestDriftInAMember(t *testing.T) {
	namespace := fleet.NameOf(t)
	the.Apply(t, fmt.Sprintf(byHand, namespace, "east, edge, west"))
	member := the.members["west"]
	ready := func(ctx context.Context) error {
		return fleet.Deployed(namespace, "web", "nginx:1.29", 1)(ctx, "west", member)
	}
	eventually(t, time.Minute, "the Deployment is ready", ready)

	var deployment appsv1.Deployment
	if err := member.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "web"}, &deployment); err != nil {
		t.Fatal(err)
	}
	edited := deployment.DeepCopy()
	edited.Spec.Template.Spec.Containers[0].Image = "nginx:edited"
	if err := member.Patch(t.Context(), edited, client.MergeFrom(&deployment)); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "the image is put back", ready)

	if err := member.Delete(t.Context(), &deployment); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "the Deployment is made again", func(ctx context.Context) error {
		var again appsv1.Deployment
		if err := member.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "web"}, &again); err != nil {
			return err
		}
		if again.UID == deployment.UID {
			return fmt.Errorf("it is still the old one")
		}
		return ready(ctx)
	})
}

// TestNamespaceEverywhere makes a namespace of the control plane appear in
// every member, and go with it.
func TestNamespaceEverywhere(t *testing.T) {
	namespace := fleet.NameOf(t)
	the.Kubectl(t, "", "create", "namespace", namespace)
	eventually(t, time.Minute, "the namespace is in every member", the.inEveryMember(
		func(ctx context.Context, _ string, member client.Client) error {
			return member.Get(ctx, types.NamespacedName{Name: namespace}, &corev1.Namespace{})
		}))
	the.Kubectl(t, "", "delete", "namespace", namespace)
	eventually(t, time.Minute, "the namespace is gone from every member", the.inEveryMember(
		func(ctx context.Context, _ string, member client.Client) error {
			return absent(ctx, member, &corev1.Namespace{}, "", namespace)
		}))
}

// absent is nil when the object is not there.
func absent(ctx context.Context, from client.Client, obj client.Object, namespace, name string) error {
	err := from.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, obj)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%T %s/%s is still there", obj, namespace, name)
}
