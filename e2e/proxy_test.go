package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// TestThroughTheProxy looks into members with nothing but the way to the control
// plane: logs, a command in a container, and a watch, by our commands and by
// kubectl.
func TestThroughTheProxy(t *testing.T) {
	namespace := nameOf(t)
	the.apply(t, fmt.Sprintf(pulled, namespace, 1, "edge"))
	for _, name := range []string{"east", "west"} {
		eventually(t, time.Minute, "the application runs in "+name, func(ctx context.Context) error {
			return deployed(namespace, "web", "nginx:1.29", 1)(ctx, name, the.members[name])
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
			if got := the.flotilla(t, tc.args...); got != tc.want {
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

// viewer is what one user may do: in the control plane, reach members, and in each
// member, look at one namespace.
const viewer = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: viewer, namespace: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules: [{apiGroups: [cluster.karmada.io], resources: [clusters/proxy], resourceNames: [%[2]s], verbs: [get, create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{kind: ServiceAccount, name: viewer, namespace: %[1]s}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: viewer, namespace: %[1]s}
rules:
  - {apiGroups: [""], resources: [pods, pods/log], verbs: [get, list, watch]}
  - {apiGroups: [""], resources: [pods/exec], verbs: [get, create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewer, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: viewer}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: "system:serviceaccount:%[1]s:viewer"}]
`

// oneNamespace has a user of the control plane who may look at one namespace look
// into each member.
func (w *world) oneNamespace(t *testing.T, namespace string, clusters []string) {
	w.apply(t, fmt.Sprintf(viewer, namespace, strings.Join(clusters, ", ")))
	kubeconfig := w.as(t, namespace, "viewer")
	look := func(ctx context.Context, cluster string, args ...string) (string, error) {
		return run(ctx, nil, "flotilla", append([]string{args[0], "-C", cluster, "--kubeconfig", kubeconfig}, args[1:]...)...)
	}
	for _, cluster := range clusters {
		eventually(t, time.Minute, "the user sees the pods in "+cluster, func(ctx context.Context) error {
			out, err := look(ctx, cluster, "get", "pods", "-n", namespace, "-o", "name")
			if err == nil && strings.Count(out, "pod/web-") != 2 {
				err = fmt.Errorf("there are %q", out)
			}
			return err
		})
		for _, args := range [][]string{
			{"get", "pods", "-A"}, {"get", "pods", "-n", "kube-system"}, {"get", "configmaps", "-n", namespace},
			{"get", "secrets", "-n", namespace}, {"get", "nodes"}, {"delete", "pods", "--all", "-n", namespace},
		} {
			out, err := look(t.Context(), cluster, args...)
			if err == nil || !strings.Contains(out, "forbidden") && !strings.Contains(out, "unknown") {
				t.Errorf("%s in %s: %v\n%s", strings.Join(args, " "), cluster, err, out)
			}
		}
	}
	if out, err := look(t.Context(), "edge", "get", "pods", "-n", namespace); err == nil || !strings.Contains(out, "forbidden") {
		t.Errorf("in a cluster that the user may not reach: %v\n%s", err, out)
	}
}

// as returns a kubeconfig of the control plane for a service account.
func (w *world) as(t *testing.T, namespace, account string) string {
	t.Helper()
	token := strings.TrimSpace(w.kubectl(t, "", "create", "token", account, "-n", namespace))
	cfg, err := clientcmd.LoadFromFile(w.Hub.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	user := cfg.Contexts[cfg.CurrentContext].AuthInfo
	cfg.AuthInfos = map[string]*clientcmdapi.AuthInfo{user: {Token: token}}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*cfg, file); err != nil {
		t.Fatal(err)
	}
	return file
}
