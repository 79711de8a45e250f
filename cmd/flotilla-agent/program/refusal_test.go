package program

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

// TestRefusals starts agents whose flags cannot be followed. The hub is a
// member of its own here: it has a kube-system namespace as well.
func TestRefusals(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a hub")
	}
	ctrl.SetLogger(logr.Discard())
	env := servertest.New(t)
	system := &corev1.Namespace{}
	if err := env.Hub.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		t.Fatal(err)
	}
	id := string(system.UID)
	cases := map[string]struct {
		there   *clusterv1alpha1.Cluster
		version string // of the hub
		want    string
	}{
		"a name that is another cluster's": {
			there: clusterOf("taken", "another-id", clusterv1alpha1.Pull),
			want: "the cluster cannot be registered: the name taken is that of another cluster, with the id another-id, and this one has " + id +
				": choose another name, or unregister that one first",
		},
		"a name of a cluster in push mode": {
			there: clusterOf("taken", id, clusterv1alpha1.Push),
			want:  "the cluster cannot be registered: taken is in push mode on the hub: unjoin it first, or choose another name",
		},
		"a cluster that has another name": {
			there: clusterOf("known", id, clusterv1alpha1.Pull),
			want:  "the cluster cannot be registered: it is registered as known: unregister that first, or use that name",
		},
		"a cluster that has joined by push": {
			there: clusterOf("known", id, clusterv1alpha1.Push),
			want:  "the cluster cannot be registered: it is registered as known: unjoin that first, or use that name",
		},
		"a hub that is older": {
			version: "v1.4.9",
			want:    "the cluster cannot be registered: the hub has version v1.4.9 and the agent v1.5.0: upgrade the hub first, or use an agent of its version",
		},
		"a hub that is much newer": {
			version: "v1.8.0",
			want:    "the cluster cannot be registered: the hub has version v1.8.0 and the agent v1.5.0, which is too old for it: upgrade the agent",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.there != nil {
				if err := env.Hub.Create(t.Context(), c.there); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					eventually(t, "the cluster is gone", func(context.Context) error {
						return client.IgnoreNotFound(env.Hub.Delete(context.WithoutCancel(t.Context()), c.there))
					})
				})
			}
			setVersion(t, env, c.version)
			o := parse(t, "--cluster-name", "taken", "--karmada-kubeconfig", env.Kubeconfig, "--kubeconfig", env.Kubeconfig,
				"--data-dir", t.TempDir(), "--metrics-bind-address", "0", "--health-probe-bind-address", "0")
			o.version = "v1.5.0"
			if err := o.validate(); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			err := o.run(ctx, logr.Discard())
			if got := fmt.Sprint(err); got != c.want || strings.Contains(got, "\n") {
				t.Errorf("ended with\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func clusterOf(name, id string, mode clusterv1alpha1.ClusterSyncMode) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.ID, c.Spec.SyncMode = id, mode
	return c
}

// setVersion has a hub say which version it is; empty: none.
func setVersion(t *testing.T, env *servertest.Env, version string) {
	t.Helper()
	info := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "flotilla-info"}}
	if err := client.IgnoreNotFound(env.Hub.Delete(t.Context(), info.DeepCopy())); err != nil {
		t.Fatal(err)
	}
	if version == "" {
		return
	}
	info.Data = map[string]string{"version": version}
	if err := env.Hub.Create(t.Context(), info); err != nil {
		t.Fatal(err)
	}
}

func TestFlags(t *testing.T) {
	good := []string{"--cluster-name", "east", "--karmada-kubeconfig", "hub"}
	registered := t.TempDir()
	if err := os.WriteFile(filepath.Join(registered, "hub.kubeconfig"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		args []string
		want string
	}{
		"what is needed":           {args: good},
		"a registration":           {args: []string{"--cluster-name", "east", "--bootstrap-token", "t", "--hub-endpoint", "hub:6443"}},
		"a registration of before": {args: []string{"--cluster-name", "east", "--data-dir", registered}},
		"a folder without one":     {args: []string{"--cluster-name", "east", "--data-dir", filepath.Dir(registered)}, want: "--karmada-kubeconfig is missing"},
		"what Karmada's agent has": {args: append(good, "--kube-api-qps=40", "--cluster-api-burst=60", "--concurrent-cluster-syncs=5")},
		"no name":                  {args: []string{"--karmada-kubeconfig", "hub"}, want: "--cluster-name is missing"},
		"no hub":                   {args: []string{"--cluster-name", "east"}, want: "--karmada-kubeconfig is missing"},
		"a token for nowhere":      {args: append(good, "--bootstrap-token", "t"), want: "go together"},
		"a name that is none":      {args: append(good, "--cluster-name", "East"), want: "is not a name for a cluster"},
		"a name that is too long":  {args: append(good, "--cluster-name", strings.Repeat("e", 49)), want: "at most 48 characters"},
		"a report of what is not":  {args: append(good, "--report-secrets", "All"), want: `"All" is not what a cluster may report`},
		"a report of none and all": {args: append(good, "--report-secrets", "None,KubeCredentials"), want: "None goes with nothing else"},
		"a lease without time":     {args: append(good, "--cluster-lease-duration", "0s"), want: "the Lease must hold"},
		"a fraction that is whole": {args: append(good, "--cluster-lease-renew-interval-fraction", "1"), want: "the Lease must hold"},
		"an endpoint with a user":  {args: append(good, "--cluster-api-endpoint", "https://u:p@host"), want: "without a user"},
		"no workers":               {args: append(good, "--concurrent-work-syncs", "0"), want: "must be at least 1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := parse(t, c.args...).validate()
			if (err != nil) != (c.want != "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "u:p")) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	if err := parse(t, good...).validate(); err == nil || !strings.Contains(err.Error(), "--data-dir is missing") {
		t.Errorf("a user without a folder of its own: error %v", err)
	}
	o := parse(t, "--cluster-name", "east", "--bootstrap-token", "t", "--hub-endpoint", "h", "--data-dir", "/d")
	if got := o.hubFile(); got != filepath.Join("/d", "hub.kubeconfig") {
		t.Errorf("the kubeconfig is kept in %s", got)
	}
}
