package management_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/management"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/command"
)

var update = flag.Bool("update", false, "rewrite golden files")

// call runs the command line and returns all that it said.
func call(t *testing.T, version string, args ...string) (code int, out, errOut string) {
	t.Helper()
	root := &cobra.Command{Use: "flotilla"}
	f := &fleet.Flags{}
	f.AddTo(root.PersistentFlags())
	f.AddConnectionTo(root.PersistentFlags())
	root.AddCommand(management.Commands(version)(f)...)
	root.SetArgs(args)
	var stdout, stderr bytes.Buffer
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	code = command.Run(t.Context(), root)
	return code, stdout.String(), stderr.String()
}

// transcript is what calls said, one after the other.
func transcript(t *testing.T, version string, before []string, calls ...string) string {
	t.Helper()
	var all strings.Builder
	for _, args := range calls {
		code, out, errOut := call(t, version, append(strings.Fields(args), before...)...)
		fmt.Fprintf(&all, "$ flotilla %s\n%s%sexit code %d\n\n", args, out, errOut, code)
	}
	return all.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// TestWrongCalls are refused before any server is asked.
func TestWrongCalls(t *testing.T) {
	golden(t, "wrong.txt", transcript(t, "", []string{"--kubeconfig", "/nowhere/kubeconfig"},
		"cordon", "cordon east -l a=b", "cordon -l a=(", "cordon east --dry-run=maybe", "cordon east --force",
		"taint", "taint nodes east a=b:NoSchedule", "taint clusters", "taint clusters east", "taint clusters a=b:NoSchedule",
		"taint clusters east a=b", "taint clusters east a=b:PreferNoSchedule", "taint clusters east a=b:NoSchedule west",
		"taint clusters east a=b:NoSchedule a=c:NoSchedule", "taint clusters east a=b:NoSchedule a-", "taint clusters east /=b:NoSchedule",
		"taint clusters east a=b/c:NoSchedule", "taint clusters east --all a-", "taint clusters --all -l a=b a-",
		"version -o wide", "version now", "options now", "cordon east", "version",
	))
}

func TestClusters(t *testing.T) {
	env := servertest.New(t)
	for name, region := range map[string]string{"east": "eu", "north": "eu", "west": "us"} {
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": region}}}
		cluster.Spec.SyncMode, cluster.Spec.ID = clusterv1alpha1.Pull, "id-of-"+name
		if err := env.Hub.Create(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
	}
	at := []string{"--kubeconfig", env.Kubeconfig}
	before := env.Revision(t)
	dry := transcript(t, "", at, "cordon east --dry-run", "cordon east --dry-run=client", "cordon east west --dry-run=server", "taint clusters --all a=b:NoExecute --dry-run=server")
	if after := env.Revision(t); after != before {
		t.Errorf("dry runs wrote %v", env.Written(t, before))
	}
	golden(t, "clusters.txt", dry+transcript(t, "", at,
		"cordon east", "cordon east", "cordon east mars", "cordon -l region=eu", "cordon -l region=mars", "uncordon west",
		"uncordon east north east",
		"taint clusters east maintenance=tonight:NoSchedule", "taint clusters east maintenance=tonight:NoSchedule",
		"taint clusters east maintenance=now:NoSchedule", "taint clusters west east maintenance=now:NoSchedule",
		"taint clusters west east maintenance=now:NoSchedule --overwrite",
		"taint cluster/west team=a:NoExecute maintenance:NoSchedule-", "taint clusters --all maintenance-", "taint clusters mars maintenance-",
		"taint clusters -l region=us other:NoSchedule",
	))
	want := map[string][]corev1.Taint{
		"east": nil, "north": nil,
		"west": {{Key: "team", Value: "a", Effect: corev1.TaintEffectNoExecute}, {Key: "other", Effect: corev1.TaintEffectNoSchedule}},
	}
	if diff := cmp.Diff(want, taints(t, env), cmpopts.IgnoreFields(corev1.Taint{}, "TimeAdded")); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
	before = env.Revision(t)
	transcript(t, "", at, "uncordon east", "taint clusters west other:NoSchedule", "taint clusters --all nothing-")
	if after := env.Revision(t); after != before {
		t.Errorf("what is as it should be was written: %v", env.Written(t, before))
	}
	t.Run("changes of others are kept", func(t *testing.T) { testBeside(t, env, at) })
	t.Run("version", func(t *testing.T) { testVersion(t, env, at) })
}

func taints(t *testing.T, env *servertest.Env) map[string][]corev1.Taint {
	t.Helper()
	list := &clusterv1alpha1.ClusterList{}
	if err := env.Hub.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	out := map[string][]corev1.Taint{}
	for i := range list.Items {
		out[list.Items[i].Name] = list.Items[i].Spec.Taints
	}
	return out
}

// testBeside has many set taints on one cluster at the same time: none gets lost.
func testBeside(t *testing.T, env *servertest.Env, at []string) {
	const many = 8
	codes := make(chan string, many)
	for i := range many {
		go func() {
			code, _, errOut := call(t, "", append([]string{"taint", "clusters", "north", fmt.Sprintf("k%d=v:NoSchedule", i)}, at...)...)
			codes <- fmt.Sprint(code, errOut)
		}()
	}
	for range many {
		if got := <-codes; got != "0" {
			t.Errorf("exit code and error: %s", got)
		}
	}
	if got := taints(t, env)["north"]; len(got) != many {
		t.Errorf("%d taints, want %d: %v", len(got), many, got)
	}
}

func testVersion(t *testing.T, env *servertest.Env, at []string) {
	info := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "flotilla-info"}, Data: map[string]string{"version": "v1.4.0"}}
	if err := client.IgnoreAlreadyExists(env.Hub.Create(t.Context(), info)); err != nil {
		t.Fatal(err)
	}
	info.Data = map[string]string{"version": "v1.4.0"}
	if err := env.Hub.Update(t.Context(), info); err != nil {
		t.Fatal(err)
	}
	for ours, warning := range map[string]string{
		"v1.4.2": "", "v1.5.0": "", "v1.3.9": "", "": "", "v1.4.0-3-gabc": "",
		"v1.6.0": "warning: this program is v1.6.0 and the control plane v1.4.0: use one of at most a minor version's difference\n",
		"v1.2.0": "warning: this program is v1.2.0 and the control plane v1.4.0: use one of at most a minor version's difference\n",
		"v2.4.0": "warning: this program is v2.4.0 and the control plane v1.4.0: use one of at most a minor version's difference\n",
	} {
		code, out, errOut := call(t, ours, append([]string{"version"}, at...)...)
		if code != 0 || errOut != warning || !strings.Contains(out, "Server Version: v1.4.0\nServer Kubernetes Version: v1.") {
			t.Errorf("%s: code %d, output %q, error %q", ours, code, out, errOut)
		}
	}
	for _, format := range []string{"json", "yaml"} {
		code, out, errOut := call(t, "v1.4.0", append([]string{"version", "-o", format}, at...)...)
		if code != 0 || errOut != "" || !strings.Contains(out, "serverVersion") || !strings.Contains(out, "kubernetesVersion") {
			t.Errorf("%s: code %d, output %q, error %q", format, code, out, errOut)
		}
	}
	if code, out, _ := call(t, "v1.4.0", "version", "--client"); code != 0 || out != "Client Version: v1.4.0\n" {
		t.Errorf("code %d, output %q", code, out)
	}
}

func TestOptions(t *testing.T) {
	code, out, _ := call(t, "", "options")
	if code != 0 || !strings.HasPrefix(out, "Flags that all commands have:\n\n") || !strings.Contains(out, "--karmada-context string") {
		t.Errorf("code %d, output:\n%s", code, out)
	}
}
