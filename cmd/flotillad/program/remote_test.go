package program

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	estimatorapi "github.com/flotilla-io/flotilla/api/estimator"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/reconciler/estimators"
)

func TestRemoteEstimators(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		on   bool
		want estimators.Options
		err  string
	}{
		"nobody asks for them": {[]string{"--scheduler-estimator-port=7000"}, false,
			estimators.Options{Namespace: "karmada-system", Prefix: "karmada-scheduler-estimator", Port: 7000, Timeout: 3 * time.Second}, ""},
		"as Karmada has them": {[]string{"--enable-scheduler-estimator=true"}, true,
			estimators.Options{Namespace: "karmada-system", Prefix: "karmada-scheduler-estimator", Port: 10352, Timeout: 3 * time.Second}, ""},
		"as they are asked for": {
			[]string{"--enable-scheduler-estimator", "--disable-scheduler-estimator-in-pull-mode", "--scheduler-estimator-timeout=1s", "--scheduler-estimator-service-namespace=fleet",
				"--scheduler-estimator-service-prefix=room", "--scheduler-estimator-port=7000", "--insecure-skip-estimator-verify"}, true,
			estimators.Options{Namespace: "fleet", Prefix: "room", Port: 7000, Timeout: time.Second, NoPull: true, Files: estimators.Files{SkipVerify: true}}, "",
		},
		"a key without a certificate": {args: []string{"--enable-scheduler-estimator", "--scheduler-estimator-key-file=key"}, err: "a certificate and its key go together"},
		"an authority that is not":    {args: []string{"--enable-scheduler-estimator", "--scheduler-estimator-ca-file=/none"}, err: "no such file"},
		"no time":                     {args: []string{"--enable-scheduler-estimator", "--scheduler-estimator-timeout=0s"}, err: "--scheduler-estimator-timeout must be more than 0"},
		"no port":                     {args: []string{"--enable-scheduler-estimator", "--scheduler-estimator-port=70000"}, err: "--scheduler-estimator-port 70000 is no port"},
		"no prefix":                   {args: []string{"--enable-scheduler-estimator", "--scheduler-estimator-service-prefix="}, err: "must not be empty"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := served(t, tc.args...)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error = %v, want %s", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if on := o.loops.scheduling.Estimates.Remote != nil; on != tc.on {
				t.Errorf("they are asked: %t, want %t", on, tc.on)
			}
			if diff := cmp.Diff(tc.want, o.loops.tuning.estimates.remote.Options); diff != "" {
				t.Errorf("estimators (-want +got):\n%s", diff)
			}
		})
	}
}

// roomy is an estimator that has a number for all.
type roomy struct {
	estimatorapi.UnimplementedEstimatorServer
	fits int32
}

func (r roomy) MaxAvailableReplicas(context.Context, *estimatorapi.MaxAvailableReplicasRequest) (*estimatorapi.MaxAvailableReplicasResponse, error) {
	return &estimatorapi.MaxAvailableReplicasResponse{MaxReplicas: r.fits}, nil
}

// serve serves on this machine until the test ends, and returns the port.
func (r roomy) serve(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	estimatorapi.RegisterEstimatorServer(server, r)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	_, text, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestReplicasGoWhereEstimatorsHaveRoom: clusters report the same, and their estimators, which the
// loops find by Services, know better. One has none, and counts by what it reports.
func TestReplicasGoWhereEstimatorsHaveRoom(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a control plane")
	}
	env := servertest.New(t)
	create := func(objects ...client.Object) {
		t.Helper()
		for _, obj := range objects {
			if err := client.IgnoreAlreadyExists(env.Hub.Create(t.Context(), obj)); err != nil {
				t.Fatal(err)
			}
		}
	}
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-system"}})
	for name, fits := range map[string]int32{"east": 6, "west": 2, "north": -1} {
		if fits > 0 {
			create(&corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-scheduler-estimator-" + name},
				Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "127.0.0.1", Ports: []corev1.ServicePort{
					{Port: 10352, TargetPort: intstr.FromInt(roomy{fits: fits}.serve(t))},
				}},
			})
		}
		create(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}})
		report(t, env.Hub, name)
	}
	replicas := int32(12)
	labels := map[string]string{"app": "web"}
	create(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx:1", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			}}}},
		}},
	}, &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
			Placement: policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
				ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
				WeightPreference: &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
			}},
		},
	})
	reported := &reported{}
	cmd := newControllersCommand(Options{})
	cmd.SetOut(reported)
	cmd.SetErr(reported)
	cmd.SetArgs([]string{"--kubeconfig", env.Kubeconfig, "--data-dir", t.TempDir(), "--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--leader-elect=false", "--enable-scheduler-estimator", "--controllers=template,scheduler"})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the loops ended with %v\n%s", err, reported)
		}
	}()
	want := map[string]int32{"east": 6, "west": 2, "north": 4}
	until(t, "replicas are where there is room", func(ctx context.Context) error {
		binding := &workv1alpha2.ResourceBinding{}
		if err := env.Hub.Get(ctx, client.ObjectKey{Namespace: "default", Name: "web-deployment"}, binding); err != nil {
			return err
		}
		got := map[string]int32{}
		for _, c := range binding.Spec.Clusters {
			got[c.Name] = c.Replicas
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("clusters (-want +got):\n%s\n%v", diff, binding.Status.Conditions)
		}
		return nil
	})
}

// report writes the status of a cluster that is ready, serves Deployments and has room for four.
func report(t *testing.T, hub client.Client, name string) {
	t.Helper()
	until(t, "the cluster reports", func(ctx context.Context) error {
		c := &clusterv1alpha1.Cluster{}
		if err := hub.Get(ctx, client.ObjectKey{Name: name}, c); err != nil {
			return err
		}
		allocatable := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("100")}
		c.Status = clusterv1alpha1.ClusterStatus{
			Conditions:      []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: "ClusterReady", LastTransitionTime: metav1.Now()}},
			APIEnablements:  []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}},
			ResourceSummary: &clusterv1alpha1.ResourceSummary{Allocatable: allocatable},
		}
		return hub.Status().Update(ctx, c)
	})
}
