package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	estimatorapi "github.com/flotilla-io/flotilla/api/estimator"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/member"
	"github.com/flotilla-io/flotilla/controlplane/member/membertest"
	"github.com/flotilla-io/flotilla/internal/command"
)

func TestEstimatorsThatCannotWork(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for name, tc := range map[string]struct {
		args string
		want string
	}{
		"of no cluster":                     {"", "--cluster-name is missing"},
		"without a certificate for anybody": {"--cluster-name=m1", "--grpc-auth-cert-file and --grpc-auth-key-file are missing"},
		"without a key":                     {"--cluster-name=m1 --grpc-auth-cert-file=a --grpc-client-ca-file=b", "go together"},
		"without a member":                  {"--cluster-name=m1 --bind-address=127.0.0.1", "--kubeconfig is missing"},
		"with no way to a member":           {"--cluster-name=m1 --bind-address=127.0.0.1 --kubeconfig=" + none, "read --kubeconfig"},
		"that answer nobody at a time":      {"--cluster-name=m1 --bind-address=127.0.0.1 --parallelism=0", "--parallelism 0 must be between"},
		"at no port":                        {"--cluster-name=m1 --bind-address=127.0.0.1 --server-port=-1", "--server-port -1 is no port"},
		"at no address":                     {"--cluster-name=m1 --bind-address=here", `--bind-address "here" is no IP address`},
		"with a gate that there is not":     {"--cluster-name=m1 --bind-address=127.0.0.1 --feature-gates=Teleport=true", `there is no feature gate "Teleport"`},
		"with a flag of serve":              {"--cluster-name=m1 --data-dir=here", "unknown flag: --data-dir"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := New(Options{})
			cmd.SetArgs(append([]string{"estimator"}, strings.Fields(tc.args)...))
			var reported bytes.Buffer
			cmd.SetOut(io.Discard)
			cmd.SetErr(&reported)
			if code := command.Run(t.Context(), cmd); code == 0 || !strings.Contains(reported.String(), tc.want) || strings.Count(reported.String(), "\n") != 1 {
				t.Errorf("ends with %d: %s", code, reported.String())
			}
		})
	}
}

// place is where an estimator says that it is ready.
var place = regexp.MustCompile(`the estimator of m1 is ready after [0-9.]+s: (127\.0\.0\.1:[0-9]+)`)

// runEstimator runs the command for a member, and returns a client of it.
func runEstimator(t *testing.T, kubeconfig string, args ...string) estimatorapi.EstimatorClient {
	t.Helper()
	out := &reported{}
	cmd := newEstimatorCommand()
	cmd.SetOut(out)
	cmd.SetErr(out)
	cmd.SetArgs(append([]string{"--cluster-name=m1", "--kubeconfig=" + kubeconfig, "--bind-address=127.0.0.1", "--server-port=0", "--metrics-bind-address=0", "--health-probe-bind-address=0"}, args...))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the estimator ended with %v\n%s", err, out)
		}
	})
	var address string
	until(t, "the estimator is ready", func(context.Context) error {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the estimator ended: %v\n%s", err, out)
		default:
		}
		found := place.FindStringSubmatch(out.String())
		if found == nil {
			return errors.New(out.String())
		}
		address = found[1]
		return nil
	})
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return estimatorapi.NewEstimatorClient(conn)
}

func until(t *testing.T, what string, holds func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		last = holds(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}

// TestTheEstimatorOfAMember asks about a real API server, with a real scheduler and pods of a
// Deployment, as these come and go.
func TestTheEstimatorOfAMember(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a member")
	}
	m := membertest.Start(t, member.Options{Name: "m1", Nodes: 2, Node: member.Capacity{CPU: "4", Memory: "8Gi", Pods: "20"}})
	estimator := runEstimator(t, m.Kubeconfig)
	if _, err := m.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cpu := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
	fits := func(what string, need *workv1alpha2.ReplicaRequirements, want int32) {
		t.Helper()
		requirements, err := estimatorapi.NewReplicaRequirements(need)
		if err != nil {
			t.Fatal(err)
		}
		until(t, what, func(ctx context.Context) error {
			answer, err := estimator.MaxAvailableReplicas(ctx, &estimatorapi.MaxAvailableReplicasRequest{Cluster: "m1", ReplicaRequirements: requirements})
			if err == nil && answer.MaxReplicas != want {
				err = fmt.Errorf("%d fit, want %d", answer.MaxReplicas, want)
			}
			return err
		})
	}
	big := &workv1alpha2.ReplicaRequirements{Namespace: "shop", ResourceRequest: cpu("1500m")}
	fits("two on each node", big, 4)
	fits("none on a node that there is not", &workv1alpha2.ReplicaRequirements{NodeClaim: &workv1alpha2.NodeClaim{NodeSelector: map[string]string{"disk": "ssd"}}, ResourceRequest: cpu("1")}, 0)

	deploy(t, m.Client, "web", 5, cpu("1500m"))
	fits("nothing beside four that run and one that waits", big, 0)
	until(t, "the one that waits is counted", func(ctx context.Context) error {
		answer, err := estimator.GetUnschedulableReplicas(ctx, &estimatorapi.UnschedulableReplicasRequest{
			Cluster: "m1", Resource: &estimatorapi.ObjectReference{ApiVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		})
		if err == nil && answer.UnschedulableReplicas != 1 {
			err = fmt.Errorf("%d wait, want 1", answer.UnschedulableReplicas)
		}
		return err
	})
	if err := m.Client.AppsV1().Deployments("shop").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	fits("all again once they are gone", big, 4)

	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.cpu": resource.MustParse("3")}}}
	if _, err := m.Client.CoreV1().ResourceQuotas("shop").Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	fits("two by the quota of their namespace", big, 2)
	elsewhere := *big
	elsewhere.Namespace = "default"
	fits("all in another namespace", &elsewhere, 4)

	without := runEstimator(t, m.Kubeconfig, "--feature-gates=ResourceQuotaEstimate=false")
	requirements, err := estimatorapi.NewReplicaRequirements(big)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := without.MaxAvailableReplicas(t.Context(), &estimatorapi.MaxAvailableReplicasRequest{Cluster: "m1", ReplicaRequirements: requirements})
	if err != nil || answer.MaxReplicas != 4 {
		t.Errorf("with quotas left out: %v, %v, want 4", answer, err)
	}
}

// deploy has replicas run, each of which requests so much.
func deploy(t *testing.T, client kubernetes.Interface, name string, replicas int32, requests corev1.ResourceList) {
	t.Helper()
	labels := map[string]string{"app": name}
	until(t, "the Deployment is there", func(ctx context.Context) error {
		_, err := client.AppsV1().Deployments("shop").Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx:1", Resources: corev1.ResourceRequirements{Requests: requests}}}},
			}},
		}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}
