package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

const adopted = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: boutique, namespace: %s}
spec:
  conflictResolution: Overwrite
  resourceSelectors:
    - {apiVersion: apps/v1, kind: Deployment}
    - {apiVersion: v1, kind: Service}
    - {apiVersion: v1, kind: ServiceAccount}
  placement:
    clusterAffinity: {clusterNames: [east, west]}
`

// annotated is in the frontend's pods, and is removed from Git later.
const annotated = `      annotations:
        sidecar.istio.io/rewriteAppHTTPProbers: "true"
`

// TestAdoption takes over an application that runs in two clusters already,
// applied there by kubectl in one and by server-side apply in the other: nothing
// restarts. From then on it follows Git, in what is removed, too.
func TestAdoption(t *testing.T) {
	files := testdata(t, "online-boutique/kustomize")
	repo := the.repository(t)
	repo.copy(files, "boutique")
	namespace := fleet.NameOf(t)
	repo.write("shop/kustomization.yaml", fmt.Sprintf("namespace: %s\nresources: [../boutique/base]\n", namespace))
	repo.write("app/kustomization.yaml", "resources: [../shop, policy.yaml]\n")
	repo.write("app/policy.yaml", fmt.Sprintf(adopted, namespace))

	clusters := map[string][]string{"east": nil, "west": {"--server-side", "--field-manager=helm"}}
	for name, flags := range clusters {
		inMember(t, name, "create", "namespace", namespace)
		inMember(t, name, append([]string{"apply", "-k", repo.tree + "/shop"}, flags...)...)
	}
	t.Cleanup(func() { forget(t, clusters, namespace) })
	before := map[string]map[string]string{}
	for name := range clusters {
		eventually(t, time.Minute, "the application runs in "+name, func(ctx context.Context) error {
			return allReady(namespace, 12)(ctx, name, the.members[name])
		})
		before[name] = running(t, name, namespace)
	}

	first := repo.push("what runs already")
	the.follow(t, repo.url, "", "")
	the.applied(t, namespace, first, 2*time.Minute)
	repo.reported(t, first, "success 2/2 clusters ready")
	for name := range clusters {
		eventually(t, 30*time.Second, "the application in "+name+" is ours", func(ctx context.Context) error {
			return managed(ctx, name, namespace)
		})
		if diff := cmp.Diff(before[name], running(t, name, namespace)); diff != "" {
			t.Errorf("%s did not stay as it was (-before +after):\n%s", name, diff)
		}
	}

	frontend, err := fs.ReadFile(files, "base/frontend.yaml")
	if err != nil {
		t.Fatal(err)
	}
	without := strings.Replace(string(frontend), annotated, "", 1)
	if without == string(frontend) {
		t.Fatal("the frontend's pods have no annotation to remove")
	}
	repo.write("boutique/base/frontend.yaml", without)
	second := repo.push("a field less")
	the.applied(t, namespace, second, time.Minute)
	eventually(t, 30*time.Second, "the field is gone from both", annotatedIn(clusters, namespace, false))

	third := repo.revert()
	the.applied(t, namespace, third, time.Minute)
	eventually(t, 30*time.Second, "the field is back in both", annotatedIn(clusters, namespace, true))
	eventually(t, time.Minute, "the frontend is the one that it was", func(ctx context.Context) error {
		for name := range clusters {
			if err := allReady(namespace, 12)(ctx, name, the.members[name]); err != nil {
				return err
			}
			if diff := cmp.Diff(only(before[name], "ReplicaSet"), only(running(t, name, namespace), "ReplicaSet")); diff != "" {
				return fmt.Errorf("in %s (-before +after):\n%s", name, diff)
			}
		}
		return nil
	})
}

// inMember runs kubectl against a member.
func inMember(t *testing.T, name string, args ...string) {
	t.Helper()
	_, err := run(t.Context(), nil, "flotilla", append([]string{"kubectl", "--kubeconfig", the.Members[name].Kubeconfig}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
}

// forget removes the namespace from the members: it was there before.
func forget(t *testing.T, clusters map[string][]string, namespace string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), slack*30*time.Second)
	defer cancel()
	for name := range clusters {
		ns := &corev1.Namespace{}
		ns.Name = namespace
		if err := client.IgnoreNotFound(the.members[name].Delete(ctx, ns)); err != nil {
			t.Error(err)
		}
	}
}

// running is who runs in a member: Deployments, ReplicaSets with their hash, and
// pods with how often they restarted.
func running(t *testing.T, name, namespace string) map[string]string {
	t.Helper()
	out := map[string]string{}
	var deployments appsv1.DeploymentList
	var sets appsv1.ReplicaSetList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&deployments, &sets, &pods} {
		if err := the.members[name].List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range deployments.Items {
		out["Deployment "+d.Name] = string(d.UID)
	}
	for _, s := range sets.Items {
		if *s.Spec.Replicas > 0 {
			out["ReplicaSet "+s.Name] = fmt.Sprintf("%s of %s", s.UID, s.Labels[appsv1.DefaultDeploymentUniqueLabelKey])
		}
	}
	for _, p := range pods.Items {
		restarts := int32(0)
		for _, c := range p.Status.ContainerStatuses {
			restarts += c.RestartCount
		}
		out["Pod "+p.Name] = fmt.Sprintf("%s restarted %d times", p.UID, restarts)
	}
	return out
}

// only keeps what is of a kind.
func only(all map[string]string, kind string) map[string]string {
	out := map[string]string{}
	for name, what := range all {
		if strings.HasPrefix(name, kind+" ") {
			out[name] = what
		}
	}
	return out
}

// managed errs unless every Deployment of a member is ours.
func managed(ctx context.Context, name, namespace string) error {
	var list appsv1.DeploymentList
	if err := the.members[name].List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for _, d := range list.Items {
		if d.Labels["karmada.io/managed"] != "true" {
			return fmt.Errorf("Deployment %s is not", d.Name)
		}
	}
	return nil
}

// annotatedIn is a check of whether the frontend's pods have the annotation.
func annotatedIn(clusters map[string][]string, namespace string, want bool) func(context.Context) error {
	return func(ctx context.Context) error {
		for name := range clusters {
			var d appsv1.Deployment
			if err := the.members[name].Get(ctx, types.NamespacedName{Namespace: namespace, Name: "frontend"}, &d); err != nil {
				return err
			}
			if _, has := d.Spec.Template.Annotations["sidecar.istio.io/rewriteAppHTTPProbers"]; has != want {
				return fmt.Errorf("in %s its pods have the annotations %v", name, d.Spec.Template.Annotations)
			}
		}
		return nil
	}
}
