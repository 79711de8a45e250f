package e2e

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/internal/ociserver"
)

// inRegistry is what a namespace needs to follow a registry, as an administrator makes it.
const inRegistry = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, namespace: %[1]s, name: default}]
`

// TestFluxAndRegistries works with artifacts of a registry by the real command line of Flux, and shows them by ours.
func TestFluxAndRegistries(t *testing.T) {
	f := flux{t: t, binary: built(t, fluxProgram), namespace: fleet.NameOf(t), cache: t.TempDir()}
	server := httptest.NewServer(ociserver.New())
	t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	the.Apply(t, fmt.Sprintf(inRegistry, f.namespace))
	t.Cleanup(func() { the.unfollow(t, f.namespace) })
	dir := t.TempDir()
	save := func(image string) {
		t.Helper()
		if err := write(filepath.Join(dir, "app", "web.yaml"), fmt.Appendf(nil, byHandApp, f.namespace, image)); err != nil {
			t.Fatal(err)
		}
	}
	push := func(commit string) string {
		t.Helper()
		out, err := f.run("push", "artifact", "oci://"+host+"/fleet:"+commit, "--path="+dir, "--source=https://git.test/fleet", "--revision=main@sha1:"+commit)
		digest := regexp.MustCompile(`sha256:[0-9a-f]{64}`).FindString(out)
		if err != nil || digest == "" {
			t.Fatalf("flux push artifact: %v\n%s", err, out)
		}
		if out, err := f.run("tag", "artifact", "oci://"+host+"/fleet:"+commit, "--tag=production"); err != nil {
			t.Fatalf("flux tag artifact: %v\n%s", err, out)
		}
		return "production@" + digest
	}
	const one, two = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"
	save("nginx:1.29")
	first := push(one)
	at := regexp.QuoteMeta(first)
	short := regexp.QuoteMeta(first[:len("production@sha256:")+8])
	f.check([]fluxStep{
		{args: "create source oci src -n NAMESPACE --insecure --tag=production --interval=1h --url=oci://" + host + "/fleet",
			want: []string{`✔ OCIRepository reconciliation completed|✔ OCIRepository source reconciliation completed`, `fetched revision: ` + at}},
		{args: "create kustomization app -n NAMESPACE --source=OCIRepository/src --path=./app --interval=1h --prune=true",
			want: []string{`✔ Kustomization app is ready`, `✔ applied revision ` + at}},
		{args: "get sources oci -n NAMESPACE", want: []string{`^src\s+` + short + `\s+False\s+True\s+stored artifact for digest '` + short}},
		{args: "get sources all -n NAMESPACE", want: []string{`^ocirepository/src\s+` + short}},
		{args: "get kustomizations -n NAMESPACE", want: []string{`^app\s+` + short}},
		{args: "trace deployment web -n NAMESPACE", want: []string{`^OCIRepository:\s+src$`, `^Origin Revision:\s+main@sha1:` + one, `^Origin Source:\s+https://git\.test/fleet$`}},
		{args: "export source oci src -n NAMESPACE", want: []string{`^kind: OCIRepository$`, `^    tag: production$`}},
		{args: "stats -n NAMESPACE", want: []string{`^OCIRepository\s+1\s+0\s+0`}},
		{args: "diff artifact oci://" + host + "/fleet:production --path=" + dir},
		{args: "list artifacts oci://" + host + "/fleet", want: []string{`main@sha1:` + one}},
	})
	save("nginx:1.30")
	second := push(two)
	f.check([]fluxStep{
		{args: "reconcile source oci src -n NAMESPACE", want: []string{`✔ fetched revision ` + regexp.QuoteMeta(second)}},
		{args: "reconcile kustomization app --with-source -n NAMESPACE", want: []string{`✔ applied revision ` + regexp.QuoteMeta(second)}},
	})
	for _, step := range []struct{ args, want string }{
		{"status -n " + f.namespace, "oci://" + host + "/fleet"},
		{"trace deployment/web -n " + f.namespace, "OCIRepository " + f.namespace + "/src"},
		{"trace deployment/web -n " + f.namespace, "main@sha1:" + two[:8]},
		{"trace ocirepository/src -n " + f.namespace, "tag production"},
		{"suspend source oci src -n " + f.namespace, "suspended"},
		{"resume source oci src -n " + f.namespace, "resumed"},
		{"reconcile source oci src -n " + f.namespace, "fetched revision " + second},
	} {
		if out := the.Flotilla(t, strings.Fields(step.args)...); !strings.Contains(out, step.want) {
			t.Errorf("flotilla %s does not print %q; it prints:\n%s", step.args, step.want, out)
		}
	}
	into := t.TempDir()
	f.check([]fluxStep{
		{args: "pull artifact oci://" + host + "/fleet:production --output " + into, want: []string{`✔ artifact content extracted to `}},
		{args: "suspend source oci src -n NAMESPACE", want: []string{`suspended`}},
		{args: "resume source oci src -n NAMESPACE", want: []string{`fetched revision ` + regexp.QuoteMeta(second)}},
		{args: "delete kustomization app -n NAMESPACE --silent", want: []string{`✔ kustomization deleted`}},
		{args: "delete source oci src -n NAMESPACE --silent", want: []string{`✔ source oci deleted`}},
	})
	if _, err := os.Stat(filepath.Join(into, "app", "web.yaml")); err != nil {
		t.Error(err)
	}
}
