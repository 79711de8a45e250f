package fleet

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const app = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s, labels: {app: web}}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "nginx:1.29"}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: %[1]s}
data: {replicas: "%[2]d"}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: %[1]s}
spec:
  resourceSelectors:
    - {apiVersion: apps/v1, kind: Deployment}
    - {apiVersion: v1, kind: ConfigMap, name: web}
    - {apiVersion: rbac.authorization.k8s.io/v1, kind: Role}
    - {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding}
  placement:
    clusterAffinity: {clusterNames: [east, west, %[3]s]}
`

// App is the manifests of a small application, a Deployment "web" with so many replicas
// and a ConfigMap that says how many, in a namespace of its own, for the clusters east,
// west and one more.
func App(namespace string, replicas int, cluster string) string {
	return fmt.Sprintf(app, namespace, replicas, cluster)
}

// Deployed is a check that a Deployment is ready in a member, with the given
// image, whatever its registry, in its first container.
func Deployed(namespace, name, image string, replicas int32) func(context.Context, string, client.Client) error {
	return func(ctx context.Context, _ string, member client.Client) error {
		var got appsv1.Deployment
		if err := member.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &got); err != nil {
			return err
		}
		if have := got.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix("/"+have, "/"+image) {
			return fmt.Errorf("Deployment %s runs %s, want %s", name, have, image)
		}
		if got.Status.AvailableReplicas != replicas || got.Status.UpdatedReplicas != replicas {
			return fmt.Errorf("Deployment %s has %d available and %d updated replicas, want %d", name, got.Status.AvailableReplicas, got.Status.UpdatedReplicas, replicas)
		}
		return nil
	}
}
