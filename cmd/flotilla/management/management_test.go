package management_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/cmd/flotilla/management"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

var golden = commandtest.Golden("testdata")

// hubs lends the tests of this package control planes.
var hubs servertest.Pool

func TestMain(m *testing.M) { os.Exit(hubs.Main(m)) }

// call runs the command line of a program of some version.
func call(t *testing.T, version string, args ...string) commandtest.Result {
	t.Helper()
	return commandtest.Run(t.Context(), commandtest.Root(management.Commands(version)), "", args...)
}

// transcript is the output of calls, one after the other.
func transcript(t *testing.T, version string, before []string, calls ...string) string {
	t.Helper()
	var all strings.Builder
	for _, args := range calls {
		all.WriteString(call(t, version, append(strings.Fields(args), before...)...).To(args))
	}
	return all.String()
}

// TestWrongCalls are refused before any server is asked.
func TestWrongCalls(t *testing.T) {
	golden(t, "wrong.txt", transcript(t, "", []string{"--kubeconfig", "/nowhere/kubeconfig"},
		"cordon", "cordon east -l a=b", "cordon -l a=(", "cordon east --dry-run=maybe", "cordon east --force",
		"taint", "taint nodes east a=b:NoSchedule", "taint clusters", "taint clusters east", "taint clusters a=b:NoSchedule",
		"taint clusters east a=b", "taint clusters east a=b:PreferNoSchedule", "taint clusters east a=b:NoSchedule west",
		"taint clusters east a=b:NoSchedule a=c:NoSchedule", "taint clusters east a=b:NoSchedule a-", "taint clusters east /=b:NoSchedule",
		"taint clusters east a=b/c:NoSchedule", "taint clusters east --all a-", "taint clusters --all -l a=b a-",
		"drain", "drain east west", "drain east -o yaml", "drain east --timeout=-1s", "drain east --dry-run --timeout 1m", "uncordon east --timeout 1m",
		"version -o wide", "version now", "options now", "cordon east", "version",
	))
}

func TestClusters(t *testing.T) {
	env := hubs.Env(t)
	for name, region := range map[string]string{"east": "eu", "north": "eu", "west": "us"} {
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": region}}}
		cluster.Spec.SyncMode, cluster.Spec.ID = clusterv1alpha1.Pull, "id-of-"+name
		if err := env.Hub.Create(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
	}
	at := []string{"--kubeconfig", env.Kubeconfig}
	before := env.QuietRevision(t) // a new server still writes what is its own
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
		"cordon wset", "uncordon wset", "taint clusters wset maintenance-", "drain wset --dry-run",
		"drain west", "drain mars --dry-run", "uncordon north --return",
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
			result := call(t, "", append([]string{"taint", "clusters", "north", fmt.Sprintf("k%d=v:NoSchedule", i)}, at...)...)
			codes <- fmt.Sprint(result.Code, result.Err)
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
		result := call(t, ours, append([]string{"version"}, at...)...)
		if result.Code != 0 || result.Err != warning || !strings.Contains(result.Out, "Server Version: v1.4.0\nServer Kubernetes Version: v1.") {
			t.Errorf("%s: %q", ours, result)
		}
	}
	for _, format := range []string{"json", "yaml"} {
		result := call(t, "v1.4.0", append([]string{"version", "-o", format}, at...)...)
		if result.Code != 0 || result.Err != "" || !strings.Contains(result.Out, "serverVersion") || !strings.Contains(result.Out, "kubernetesVersion") {
			t.Errorf("%s: %q", format, result)
		}
	}
	if result := call(t, "v1.4.0", "version", "--client"); result.Code != 0 || result.Out != "Client Version: v1.4.0\n" {
		t.Errorf("it says %q", result)
	}
}

func TestOptions(t *testing.T) {
	result := call(t, "", "options")
	if result.Code != 0 || !strings.HasPrefix(result.Out, "Flags that all commands have:\n\n") || !strings.Contains(result.Out, "--karmada-context string") {
		t.Errorf("it says:\n%s", result)
	}
}
