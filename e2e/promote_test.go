package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// app runs in a member before the fleet knows of it.
const app = `
apiVersion: v1
kind: Namespace
metadata: {name: NAMESPACE}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: NAMESPACE}
data: {color: blue}
---
apiVersion: v1
kind: Secret
metadata: {name: db, namespace: NAMESPACE}
stringData: {password: hunter2}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NAMESPACE}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: web:1
          envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: db}}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: NAMESPACE}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80}]}
`

// TestPromote takes an application over that runs in one cluster, by nothing but
// the control plane's credentials, changes it as part of the fleet, and gives it
// back: nothing restarts when it changes hands.
func TestPromote(t *testing.T) {
	namespace := fleet.NameOf(t)
	manifests := strings.ReplaceAll(app, "NAMESPACE", namespace)
	member := the.members["west"]
	if _, err := run(t.Context(), []byte(manifests), "flotilla", "kubectl", "--kubeconfig", the.Members["west"].Kubeconfig, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { forget(t, map[string][]string{"west": nil}, namespace) })
	eventually(t, time.Minute, "the application runs in west", func(ctx context.Context) error {
		return allReady(namespace, 1)(ctx, "west", member)
	})
	before := running(t, "west", namespace)
	port := nodePort(t, member, namespace)

	the.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}\n")
	flotilla(t, "promote", "deployment", "web", "-n", namespace, "-C", "west", "--dependencies", "--dry-run=server")
	out := flotilla(t, "promote", "deployment", "web", "-n", namespace, "-C", "west", "--dependencies")
	for _, what := range []string{"Deployment %s/web promoted", "ConfigMap %s/settings promoted along", "Secret %s/db promoted along"} {
		if !strings.Contains(out, fmt.Sprintf(what, namespace)) {
			t.Errorf("it does not say %q:\n%s", fmt.Sprintf(what, namespace), out)
		}
	}
	flotilla(t, "promote", "service", "web", "-n", namespace, "-C", "west")
	eventually(t, 30*time.Second, "all of it is managed", isManaged(namespace, true))
	eventually(t, 30*time.Second, "the template has the status of west", func(ctx context.Context) error {
		return allReady(namespace, 1)(ctx, "the control plane", the.hub)
	})
	if diff := cmp.Diff(before, running(t, "west", namespace)); diff != "" {
		t.Errorf("west did not stay as it was (-before +after):\n%s", diff)
	}
	if now := nodePort(t, member, namespace); now != port {
		t.Errorf("the node port was %d and is %d", port, now)
	}

	the.Kubectl(t, "", "patch", "configmap", "settings", "-n", namespace, "--type=merge", "-p", `{"data":{"color":"green"}}`)
	eventually(t, 30*time.Second, "a change of the fleet is in west", func(ctx context.Context) error {
		settings := &corev1.ConfigMap{}
		err := member.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "settings"}, settings)
		if err == nil && settings.Data["color"] != "green" {
			err = fmt.Errorf("the color is %s", settings.Data["color"])
		}
		return err
	})

	flotilla(t, "promote", "deployment", "web", "-n", namespace, "-C", "west", "--undo")
	flotilla(t, "promote", "service", "web", "-n", namespace, "-C", "west", "--undo")
	if err := isManaged(namespace, false)(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, running(t, "west", namespace)); diff != "" {
		t.Errorf("west did not stay as it was (-before +after giving it back):\n%s", diff)
	}
	out = the.Kubectl(t, "", "get", "deployments,configmaps,secrets,services,propagationpolicies", "-n", namespace, "-o", "name")
	if strings.Contains(out, "/web") || strings.Contains(out, "/settings") || strings.Contains(out, "/db") {
		t.Errorf("the control plane still has\n%s", out)
	}
}

// flotilla runs the command line against the control plane.
func flotilla(t *testing.T, args ...string) string {
	t.Helper()
	out, err := run(t.Context(), nil, "flotilla", append(args, "--kubeconfig", the.Hub.Kubeconfig)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func nodePort(t *testing.T, member client.Client, namespace string) int32 {
	t.Helper()
	service := &corev1.Service{}
	if err := member.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "web"}, service); err != nil {
		t.Fatal(err)
	}
	return service.Spec.Ports[0].NodePort
}

// marked is a check of whether what was promoted bears the fleet's marks in west.
func isManaged(namespace string, want bool) func(context.Context) error {
	return func(ctx context.Context) error {
		var all []error
		for kind, name := range map[string]string{"Deployment": "web", "ConfigMap": "settings", "Secret": "db", "Service": "web"} {
			obj := &metav1.PartialObjectMetadata{}
			obj.APIVersion, obj.Kind = "v1", kind
			if kind == "Deployment" {
				obj.APIVersion = "apps/v1"
			}
			err := the.members["west"].Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, obj)
			if apierrors.IsNotFound(err) {
				err = fmt.Errorf("%s %s is gone", kind, name)
			}
			has := false
			for key := range obj.Labels {
				has = has || strings.Contains(key, "karmada.io/")
			}
			for key := range obj.Annotations {
				has = has || strings.Contains(key, "karmada.io/")
			}
			if err == nil && has != want {
				err = fmt.Errorf("%s %s has the labels %v and annotations %v", kind, name, obj.Labels, obj.Annotations)
			}
			all = append(all, err)
		}
		return errors.Join(all...)
	}
}
