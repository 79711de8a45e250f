package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/command"
)

// runBinary runs the whole command line in this process.
func runBinary(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	return commandtest.Run(ctx, newCommand("flotilla"), "", args...).All()
}

// What no command may print.
const (
	canary      = "canary-in-a-coal-mine"
	canaryCoded = "Y2FuYXJ5LWluLWEtY29hbC1taW5l"
)

// shown are the commands that are not called: they run on, or start programs.
var shown = []string{"demo", "port-forward", "exec", "attach", "help"}

// TestCanary calls every command in odd ways, against a control plane with a
// Secret, by a kubeconfig with credentials: no command prints either, nor where in
// the program it failed.
func TestCanary(t *testing.T) {
	env := servertest.New(t)
	t.Setenv("KUBE_EDITOR", "true")
	t.Setenv("KUBECACHEDIR", t.TempDir())
	secret := hide(t, env)
	odd := [][]string{
		{},
		{"secret", "canary", "-n", "mine"},
		{"secret/canary", "-n", "mine"},
		{"secret", "canary", "more", "-n", "mine"},
		{"secrets", "-n", "mine", "-o", "wide"},
		{"secret", "canary", "-n", "mine", "-o", "name"},
		{"secret", "canary", "a=b", "-n", "mine", "--dry-run=server"},
		{"secret", "canary", "-n", "mine", "-C", "nowhere"},
		{"-f", secret, "-n", "mine"},
		{"-f", secret, "-n", "other"},
		{"-f", secret, "-n", "mine", "--as", "viewer"},
		{"-f", filepath.Join(t.TempDir(), "none.yaml")},
		{"\x00", "..", "%2e%2e/%2f", "-n", "\xff"},
		{"canary", "--token", canary, "--as", canary + "-not", "-n", "mine"},
	}
	kubeconfigs := []string{env.Kubeconfig, credentials(t, env)}
	for _, path := range everyCommand(newCommand("flotilla"), nil) {
		if slices.Contains(shown, path[0]) {
			continue
		}
		t.Run(strings.Join(path, " "), func(t *testing.T) {
			calls := odd
			if path[0] == "patch" { // what others make of -p is to say that it is wrong
				calls = append(slices.Clone(odd), []string{"secret", "canary", "-n", "mine", "--as", "viewer", "-p", `{"stringData":{"more":"` + canary + `"}}`})
			}
			for _, words := range calls {
				for _, kubeconfig := range kubeconfigs {
					args := append(append(slices.Clone(path), words...), "--kubeconfig", kubeconfig)
					code, out, errOut := runBinary(t, args...)
					check(t, args, code, out+errOut)
				}
			}
		})
	}
}

// look errs if what a call printed must not be printed.
func check(t *testing.T, args []string, code int, printed string) {
	t.Helper()
	call := strings.Join(args, " ")
	printed = strings.ReplaceAll(printed, canary+"-not", "") // is no secret: who one asks to be
	for _, never := range []string{canary, canaryCoded, "goroutine ", "panic:", "runtime error", ".go:"} {
		if strings.Contains(printed, never) {
			t.Errorf("%s prints %q:\n%s", call, never, printed)
		}
	}
	if code != command.Done && code != command.Failed && code != command.Wrong {
		t.Errorf("%s: exit code %d:\n%s", call, code, printed)
	}
}

// hide stores the Secret, and returns a file with a change of it that the server
// refuses.
func hide(t *testing.T, env *servertest.Env) string {
	t.Helper()
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "nowhere"}}
	cluster.Spec.SyncMode, cluster.Spec.ID = clusterv1alpha1.Pull, "nowhere"
	immutable := true
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "mine", Name: "canary", Labels: map[string]string{"resourcetemplate.karmada.io/deletion-protected": "Always"}},
		StringData: map[string]string{"password": canary}, Immutable: &immutable,
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "viewer"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"},
	}}}
	viewer := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "viewer"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "viewer"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "viewer"}},
	}
	for _, obj := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, cluster, s, role, viewer} {
		if err := env.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "secret.yaml")
	content := "apiVersion: v1\nkind: Secret\nimmutable: true\nmetadata: {name: canary, namespace: mine}\nstringData: {password: " + canary + ", another: " + canary + "}\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// credentials is a kubeconfig with a token that the control plane refuses.
func credentials(t *testing.T, env *servertest.Env) string {
	t.Helper()
	return commandtest.Changed(t, env.Kubeconfig, func(info *clientcmdapi.AuthInfo) { *info = clientcmdapi.AuthInfo{Token: canary} })
}
