package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// TestThroughTheProxy looks into members with nothing but the way to the control
// plane: logs, a command in a container, and a watch, by our commands and by
// kubectl.
func TestThroughTheProxy(t *testing.T) {
	namespace := fleet.NameOf(t)
	the.Apply(t, fleet.App(namespace, 1, "edge"))
	for _, name := range []string{"east", "west"} {
		eventually(t, time.Minute, "the application runs in "+name, func(ctx context.Context) error {
			return fleet.Deployed(namespace, "web", "nginx:1.29", 1)(ctx, name, the.members[name])
		})
	}
	for _, name := range []string{"east", "west"} {
		pod := podIn(t, the.members[name], namespace)
		lines := fmt.Sprintf("container web of pod %[1]s/%[2]s started\ncontainer web of pod %[1]s/%[2]s is simulated and does nothing\n", namespace, pod)
		server := the.proxy(t, name)
		for what, tc := range map[string]struct {
			args []string
			want string
		}{
			"logs":             {[]string{"logs", "deployment/web", "-n", namespace, "-C", name}, lines},
			"exec":             {[]string{"exec", pod, "-n", namespace, "-C", name, "--", "hostname"}, pod + "\n"},
			"get":              {[]string{"get", "pods", "-n", namespace, "-C", name, "-o", "name"}, "pod/" + pod + "\n"},
			"kubectl logs":     {[]string{"kubectl", "--server", server, "logs", "deployment/web", "-n", namespace}, lines},
			"kubectl exec":     {[]string{"kubectl", "--server", server, "exec", pod, "-n", namespace, "--", "hostname"}, pod + "\n"},
			"kubectl get":      {[]string{"kubectl", "--server", server, "get", "pods", "-n", namespace, "-o", "name"}, "pod/" + pod + "\n"},
			"kubectl describe": {[]string{"kubectl", "--server", server, "get", "deployment", "web", "-n", namespace, "-o", "jsonpath={.status.availableReplicas}"}, "1"},
		} {
			if got := the.Flotilla(t, tc.args...); got != tc.want {
				t.Errorf("%s in %s: %q, want %q", what, name, got, tc.want)
			}
		}
	}
	t.Run("watch", func(t *testing.T) { the.watched(t, namespace) })
}

// proxy is where the control plane offers the API of a member.
func (w *world) proxy(t *testing.T, cluster string) string {
	t.Helper()
	cfg, err := w.Hub.Config()
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Host + "/apis/cluster.karmada.io/v1alpha1/clusters/" + cluster + "/proxy"
}

// podIn returns the one pod of a namespace of a member.
func podIn(t *testing.T, member client.Client, namespace string) string {
	t.Helper()
	var pods corev1.PodList
	if err := member.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 1 {
		t.Fatalf("%d pods, want 1", len(pods.Items))
	}
	return pods.Items[0].Name
}

// watched changes an object of a member while somebody watches it through the
// control plane.
func (w *world) watched(t *testing.T, namespace string) {
	ctx, cancel := context.WithTimeout(t.Context(), slack*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, fleet.Program("flotilla"), "get", "deployments", "-n", namespace, "-C", "east", "--watch",
		"-o", "jsonpath={.metadata.name} {.metadata.labels.seen}{\"\\n\"}", "--kubeconfig", w.Hub.Kubeconfig)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	await := func(want string) {
		t.Helper()
		var seen []string
		for lines.Scan() {
			if seen = append(seen, lines.Text()); strings.TrimSpace(lines.Text()) == want {
				return
			}
		}
		t.Errorf("the watch ended without %q: %q", want, seen)
	}
	await("web")
	for _, value := range []string{"once", "twice"} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"seen":%q}}}`, value)
		if err := w.members["east"].Patch(t.Context(), d, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
		await("web " + value)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // to its end
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("interrupted, it ends with %s", cmd.ProcessState)
	}
}
