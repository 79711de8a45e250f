package agents

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

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
	w.Apply(t, fmt.Sprintf(viewer, namespace, strings.Join(clusters, ", ")))
	kubeconfig := w.as(t, namespace, "viewer")
	read := func(ctx context.Context, cluster string, args ...string) (string, error) {
		return run(ctx, nil, "flotilla", append([]string{args[0], "-C", cluster, "--kubeconfig", kubeconfig}, args[1:]...)...)
	}
	for _, cluster := range clusters {
		eventually(t, time.Minute, "the user sees the pods in "+cluster, func(ctx context.Context) error {
			out, err := read(ctx, cluster, "get", "pods", "-n", namespace, "-o", "name")
			if err == nil && strings.Count(out, "pod/web-") != 2 {
				err = fmt.Errorf("there are %q", out)
			}
			return err
		})
		for _, args := range [][]string{
			{"get", "pods", "-A"}, {"get", "pods", "-n", "kube-system"}, {"get", "configmaps", "-n", namespace},
			{"get", "secrets", "-n", namespace}, {"get", "nodes"}, {"delete", "pods", "--all", "-n", namespace},
		} {
			out, err := read(t.Context(), cluster, args...)
			if err == nil || !strings.Contains(out, "forbidden") && !strings.Contains(out, "unknown") {
				t.Errorf("%s in %s: %v\n%s", strings.Join(args, " "), cluster, err, out)
			}
		}
	}
	if out, err := read(t.Context(), "edge", "get", "pods", "-n", namespace); err == nil || !strings.Contains(out, "forbidden") {
		t.Errorf("in a cluster that the user may not reach: %v\n%s", err, out)
	}
}

// as returns a kubeconfig of the control plane for a service account.
func (w *world) as(t *testing.T, namespace, account string) string {
	t.Helper()
	token := strings.TrimSpace(w.Kubectl(t, "", "create", "token", account, "-n", namespace))
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
