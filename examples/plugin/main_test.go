package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotillad/program"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
)

func TestFilter(t *testing.T) {
	cases := map[string]struct {
		namespace, tier, want string
	}{
		"production, a cluster of gold":   {namespace: "prod-shop", tier: "gold"},
		"production, a cluster of silver": {namespace: "prod-shop", tier: "silver", want: "cluster(s) were not of tier gold"},
		"tests, a cluster of silver":      {namespace: "test-shop", tier: "silver"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := &framework.Request{Spec: &workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{Namespace: tc.namespace}}}
			c := framework.NewCluster(member("m1", tc.tier))
			if got := (GoldForProduction{}).Filter(req, c); got != tc.want {
				t.Errorf("Filter = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestFlagsKnowThePlugin(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string // of the error
	}{
		"by its name":              {[]string{"--plugins=*,-GoldForProduction"}, "--data-dir is missing"},
		"and no other":             {[]string{"--data-dir=x", "--plugins=*,-Silver"}, `--plugins: there is no plugin "Silver": there are APIEnablement, `},
		"a gate that nobody knows": {[]string{"--data-dir=x", "--feature-gates=Teleport=true"}, `--feature-gates: there is no feature gate "Teleport": there are AllAlpha, `},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cmd := program.New(options())
			cmd.SetArgs(append([]string{"serve"}, tc.args...))
			cmd.SetOut(io.Discard)
			cmd.SetErr(io.Discard)
			err := cmd.ExecuteContext(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line that starts with %q", err, tc.want)
			}
		})
	}
}

func member(name, tier string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": tier}},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull},
		Status: clusterv1alpha1.ClusterStatus{APIEnablements: []clusterv1alpha1.APIEnablement{
			{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
		}},
	}
}

// TestServe runs the program, and sees the plugin decide, explain itself in the
// condition, and change its mind when a label changes.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	cmd := program.New(options())
	cmd.SetArgs([]string{
		"serve", "--data-dir", dir, "--secure-port=0", "--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--controllers=template,scheduler,status",
	})
	var out output
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	}()
	out.await(t, "is ready")
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "admin.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	hub, err := client.New(cfg, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*clusterv1alpha1.Cluster{member("m1", "silver"), member("m2", "bronze")} {
		status := c.Status
		create(t, hub, c)
		c.Status = status
		if err := hub.Status().Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	create(t, hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "prod-shop"}})
	create(t, hub, &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod-shop", Name: "all"},
		Spec:       policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}},
	})
	labels := map[string]string{"app": "web"}
	create(t, hub, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod-shop", Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "fake/web"}}},
			},
		},
	})
	awaitCondition(t, hub, "False NoClusterFit: 0/2 clusters are available: 2 cluster(s) were not of tier gold.")
	relabel := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"tier":"gold"}}}`))
	if err := hub.Patch(t.Context(), member("m2", ""), relabel); err != nil {
		t.Fatal(err)
	}
	awaitCondition(t, hub, "True Success: Binding has been scheduled successfully.")
}

func create(t *testing.T, hub client.Client, obj client.Object) {
	t.Helper()
	if err := hub.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

// awaitCondition waits until the binding says so.
func awaitCondition(t *testing.T, hub client.Client, want string) {
	t.Helper()
	got := "no binding"
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		b := &workv1alpha2.ResourceBinding{}
		if err := hub.Get(ctx, client.ObjectKey{Namespace: "prod-shop", Name: "web-deployment"}, b); err != nil {
			got = err.Error()
			return false, nil //nolint:nilerr // it comes
		}
		if c := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.Scheduled); c != nil {
			got = fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
		return got == want, nil
	})
	if err != nil {
		t.Fatalf("the binding says %q, want %q", got, want)
	}
}
