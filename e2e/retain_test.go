package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// scaled is an application that an autoscaler in the member scales: it asks for
// three, whatever it measures.
const scaled = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: %[1]s}
data: {mode: fast}
---
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: %[1]s}
stringData: {key: "17"}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: %[1]s
  labels: {resourcetemplate.karmada.io/retain-replicas: "true"}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: %[2]q
          envFrom: [{configMapRef: {name: settings}}]
          env: [{name: KEY, valueFrom: {secretKeyRef: {name: keys, key: key}}}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: %[1]s}
spec:
  propagateDeps: true
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement:
    clusterAffinity: {clusterNames: [east, west]}
`

const scaler = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: %s}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 3
  maxReplicas: 5
`

// TestWhatMembersOwn follows an application from Git whose replicas belong to an
// autoscaler in the member, and whose ConfigMap and Secret follow it.
func TestWhatMembersOwn(t *testing.T) {
	namespace := fleet.NameOf(t)
	repo := the.repository(t)
	repo.write("app/app.yaml", fmt.Sprintf(scaled, namespace, "nginx:1.28"))
	repo.push("an application")
	the.follow(t, repo.url, "", "")
	both := func(check func(context.Context, string, client.Client) error) func(context.Context) error {
		return func(ctx context.Context) error {
			for _, name := range []string{"east", "west"} {
				if err := check(ctx, name, the.members[name]); err != nil {
					return fmt.Errorf("in %s: %w", name, err)
				}
			}
			return nil
		}
	}
	eventually(t, time.Minute, "it runs in both", both(fleet.Deployed(namespace, "web", "nginx:1.28", 1)))
	eventually(t, 30*time.Second, "what it reads is there, too", both(func(ctx context.Context, _ string, member client.Client) error {
		if err := member.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "settings"}, &corev1.ConfigMap{}); err != nil {
			return err
		}
		return member.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "keys"}, &corev1.Secret{})
	}))
	if err := absent(t.Context(), the.members["edge"], &corev1.ConfigMap{}, namespace, "settings"); err != nil {
		t.Errorf("nobody needs it there: %v", err)
	}

	kubeconfig := the.Members["east"].Kubeconfig
	if _, err := run(t.Context(), []byte(fmt.Sprintf(scaler, namespace)), "flotilla", "kubectl", "--kubeconfig", kubeconfig, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the autoscaler scales in east", func(ctx context.Context) error {
		return fleet.Deployed(namespace, "web", "nginx:1.28", 3)(ctx, "east", the.members["east"])
	})
	repo.write("app/app.yaml", fmt.Sprintf(scaled, namespace, "nginx:1.29"))
	second := repo.push("a new image")
	the.applied(t, namespace, second, time.Minute)
	eventually(t, 30*time.Second, "the new image has the replicas that the member wants", func(ctx context.Context) error {
		if err := fleet.Deployed(namespace, "web", "nginx:1.29", 3)(ctx, "east", the.members["east"]); err != nil {
			return err
		}
		return fleet.Deployed(namespace, "web", "nginx:1.29", 1)(ctx, "west", the.members["west"])
	})
	repo.reported(t, second, "success 2/2 clusters ready")

	repo.write("app/app.yaml", strings.Replace(fmt.Sprintf(scaled, namespace, "nginx:1.29"), "mode: fast", "mode: slow", 1))
	third := repo.push("other settings")
	the.applied(t, namespace, third, time.Minute)
	eventually(t, 30*time.Second, "the settings follow", both(func(ctx context.Context, _ string, member client.Client) error {
		var settings corev1.ConfigMap
		if err := member.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "settings"}, &settings); err != nil {
			return err
		}
		if settings.Data["mode"] != "slow" {
			return fmt.Errorf("its data is %v", settings.Data)
		}
		return nil
	}))
}

// TestDriftReported leaves what somebody changed by hand as it is where the
// policy says so, and reports it; then it is told to revert.
func TestDriftReported(t *testing.T) {
	namespace := fleet.NameOf(t)
	manifests := strings.Replace(fmt.Sprintf(byHandApp, namespace, "nginx:1.29"), "  placement:\n", "  drift: Report\n  placement:\n", 1)
	the.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}\n---\n"+manifests)
	member := the.members["west"]
	key := types.NamespacedName{Namespace: namespace, Name: "web"}
	eventually(t, time.Minute, "the Deployment is ready", func(ctx context.Context) error {
		return fleet.Deployed(namespace, "web", "nginx:1.29", 1)(ctx, "west", member)
	})
	inMember(t, "west", "set", "image", "deployment/web", "web=nginx:edited", "-n", namespace)
	eventually(t, 30*time.Second, "the binding tells of the change", func(ctx context.Context) error {
		return drifted(ctx, key, metav1.ConditionTrue, "DriftReported", "west", "image")
	})
	if err := fleet.Deployed(namespace, "web", "nginx:edited", 1)(t.Context(), "west", member); err != nil && strings.Contains(err.Error(), "runs") {
		t.Errorf("the change is to be reported, not reverted: %v", err)
	}

	the.Kubectl(t, "", "patch", "pp", "web", "-n", namespace, "--type=merge", "-p", `{"spec":{"drift":"Revert"}}`)
	eventually(t, 30*time.Second, "the image is put back", func(ctx context.Context) error {
		return fleet.Deployed(namespace, "web", "nginx:1.29", 1)(ctx, "west", member)
	})
	eventually(t, 30*time.Second, "the binding tells what was put back", func(ctx context.Context) error {
		return drifted(ctx, key, metav1.ConditionFalse, "DriftReverted", "west", "image")
	})
}

// drifted errs unless the binding of a Deployment says so of drift.
func drifted(ctx context.Context, template types.NamespacedName, status metav1.ConditionStatus, reason string, words ...string) error {
	var b workv1alpha2.ResourceBinding
	if err := the.hub.Get(ctx, types.NamespacedName{Namespace: template.Namespace, Name: workv1alpha2.BindingName("Deployment", template.Name)}, &b); err != nil {
		return err
	}
	c := apimeta.FindStatusCondition(b.Status.Conditions, workv1alpha1.WorkDrifted)
	if c == nil || c.Status != status || c.Reason != reason {
		return fmt.Errorf("%s is %+v", workv1alpha1.WorkDrifted, c)
	}
	for _, word := range words {
		if !strings.Contains(c.Message, word) {
			return fmt.Errorf("its message is %q, want %q in it", c.Message, word)
		}
	}
	return nil
}
