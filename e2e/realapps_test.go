package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

const boutique = `
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: %s
resources: [../boutique/base, policies.yaml]
components:%s
`

const boutiqueComponents = `
  - ../boutique/components/network-policies
  - ../boutique/components/single-shared-session`

const boutiquePolicies = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: boutique}
spec:
  resourceSelectors:
    - {apiVersion: apps/v1, kind: Deployment}
    - {apiVersion: v1, kind: Service}
    - {apiVersion: v1, kind: ServiceAccount}
    - {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy}
  placement:
    clusterAffinity: {clusterNames: [east, edge, west]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: frontend}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: frontend}]
  overrideRules:
    - targetCluster: {clusterNames: [edge]}
      overriders:
        imageOverrider: [{component: Repository, operator: replace, value: edge/frontend}]
        plaintext: [{path: /spec/replicas, operator: add, value: 2}]
    - targetCluster: {clusterNames: [west]}
      overriders:
        labelsOverrider: [{operator: add, value: {region: west}}]
`

// TestOnlineBoutique takes a real application through its life: a first commit
// that makes it run on three clusters with overrides, an update, one that
// removes a part, and a revert.
func TestOnlineBoutique(t *testing.T) {
	files := testdata(t, "online-boutique/kustomize")
	repo := the.repository(t)
	repo.copy(files, "boutique")
	repo.write("app/policies.yaml", boutiquePolicies)
	namespace := fleet.NameOf(t)
	repo.write("app/kustomization.yaml", fmt.Sprintf(boutique, namespace, boutiqueComponents))
	first := repo.push("the boutique")
	the.follow(t, repo.url, "", "")

	the.applied(t, namespace, first, 3*time.Minute)
	eventually(t, time.Minute, "each cluster runs its own frontend", frontends(namespace, "v0.10.6"))
	eventually(t, time.Minute, "all twelve Deployments run in every member", the.inEveryMember(allReady(namespace, 12)))
	eventually(t, time.Minute, "components were built in", the.inEveryMember(
		func(ctx context.Context, _ string, member client.Client) error {
			return member.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "frontend"}, &networkingv1.NetworkPolicy{})
		}))
	repo.reported(t, first, "success 3/3 clusters ready")

	frontend, err := fs.ReadFile(files, "base/frontend.yaml")
	if err != nil {
		t.Fatal(err)
	}
	repo.write("boutique/base/frontend.yaml", strings.ReplaceAll(string(frontend), "v0.10.6", "v0.10.7"))
	second := repo.push("a new frontend")
	the.applied(t, namespace, second, 2*time.Minute)
	eventually(t, time.Minute, "each cluster runs the new frontend", frontends(namespace, "v0.10.7"))
	repo.reported(t, second, "success 3/3 clusters ready")

	repo.write("app/kustomization.yaml", fmt.Sprintf(boutique, namespace, boutiqueComponents+"\n  - ../boutique/components/without-loadgenerator"))
	third := repo.push("no more load")
	the.applied(t, namespace, third, 2*time.Minute)
	eventually(t, 30*time.Second, "the load generator is gone from every member", the.inEveryMember(
		func(ctx context.Context, _ string, member client.Client) error {
			return absent(ctx, member, &appsv1.Deployment{}, namespace, "loadgenerator")
		}))
	eventually(t, time.Minute, "nothing else went", the.inEveryMember(allReady(namespace, 11)))

	fourth := repo.revert()
	the.applied(t, namespace, fourth, 2*time.Minute)
	eventually(t, time.Minute, "the load generator is back", the.inEveryMember(allReady(namespace, 12)))
	repo.reported(t, fourth, "success 3/3 clusters ready")
}

func frontends(namespace, tag string) func(context.Context) error {
	return the.inEveryMember(func(ctx context.Context, name string, member client.Client) error {
		image, replicas := "frontend:"+tag, int32(1)
		if name == "edge" {
			image, replicas = "edge/frontend:"+tag, 2
		}
		return fleet.Deployed(namespace, "frontend", image, replicas)(ctx, name, member)
	})
}

// allReady is a check that a namespace holds so many Deployments, all of them
// available.
func allReady(namespace string, want int) func(context.Context, string, client.Client) error {
	return func(ctx context.Context, _ string, member client.Client) error {
		var list appsv1.DeploymentList
		if err := member.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(list.Items) != want {
			return fmt.Errorf("%d Deployments, want %d", len(list.Items), want)
		}
		for _, d := range list.Items {
			if d.Status.AvailableReplicas < *d.Spec.Replicas || d.Status.ObservedGeneration < d.Generation {
				return fmt.Errorf("Deployment %s has %d of %d replicas available", d.Name, d.Status.AvailableReplicas, *d.Spec.Replicas)
			}
		}
		return nil
	}
}

// TestPodinfo carries a Deployment with its Service and autoscaler, and keeps
// what an autoscaler in a member did.
func TestPodinfo(t *testing.T) {
	files := testdata(t, "podinfo/kustomize")
	repo := the.repository(t)
	repo.copy(files, "podinfo")
	namespace := fleet.NameOf(t)
	repo.write("app/kustomization.yaml", fmt.Sprintf(`
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: %s
resources: [../podinfo, policy.yaml]
`, namespace))
	repo.write("app/policy.yaml", `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: podinfo}
spec:
  resourceSelectors:
    - {apiVersion: apps/v1, kind: Deployment, name: podinfo}
    - {apiVersion: v1, kind: Service, name: podinfo}
    - {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, name: podinfo}
  placement:
    clusterAffinity: {exclude: [edge]}
`)
	first := repo.push("podinfo")
	the.follow(t, repo.url, "", "")
	the.applied(t, namespace, first, 3*time.Minute)
	repo.reported(t, first, "success 2/2 clusters ready")

	for _, name := range []string{"east", "west"} {
		var hpa autoscalingv2.HorizontalPodAutoscaler
		if err := the.members[name].Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "podinfo"}, &hpa); err != nil {
			t.Errorf("the autoscaler in %s: %v", name, err)
		}
	}
	if err := absent(t.Context(), the.members["edge"], &appsv1.Deployment{}, namespace, "podinfo"); err != nil {
		t.Error(err)
	}
}
