package registration_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/cmd/flotilla/registration"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/reconciler/cluster"
)

// TestUnregisterWithASilentAgent: unregister says what it waits for, and afterwards
// what nobody has removed.
func TestUnregisterWithASilentAgent(t *testing.T) {
	env := hubs.Env(t)
	clock := testingclock.NewFakeClock(time.Now())
	env.Loops(t, func(_ context.Context, mgr ctrl.Manager) error {
		registry := members.New(members.Options{Interpreter: interpreter.Native()})
		return cluster.New(mgr.GetClient(), mgr.GetAPIReader(), registry, record.NewFakeRecorder(1000),
			cluster.Options{Silence: cluster.Silence{Grace: time.Second, Startup: 8 * time.Second}, Clock: clock}).Register(mgr)
	})
	silent := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "silent"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	if err := env.Hub.Create(t.Context(), silent); err != nil {
		t.Fatal(err)
	}
	space := workv1alpha2.ExecutionNamespace("silent")
	servertest.Until(t, "the cluster has its namespace", func() bool {
		return env.Hub.Get(t.Context(), client.ObjectKey{Name: space}, &corev1.Namespace{}) == nil
	})
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "one", Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer}}}
	for _, name := range []string{"kept", "gone"} {
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, workv1alpha1.Manifest{RawExtension: runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"` + name + `"}}`),
		}})
	}
	if err := env.Hub.Create(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "kept"}} // the hub stands for the member
	kept.Labels = map[string]string{workv1alpha2.ManagedByKarmadaLabel: workv1alpha2.ManagedByKarmadaLabelValue}
	kept.Annotations = map[string]string{workv1alpha2.WorkNamespaceAnnotation: space, workv1alpha2.WorkNameAnnotation: "one", workv1alpha2.HubAnnotation: identityOf(t, env.Hub)}
	if err := env.Hub.Create(t.Context(), kept); err != nil {
		t.Fatal(err)
	}

	waits := "what 1 Work had it run is still to be removed from cluster silent by its agent"
	root := commandtest.Root(registration.Commands)
	out, errOut := commandtest.Prepare(root, "", "unregister", "silent", "--kubeconfig", env.Kubeconfig, "--cluster-kubeconfig", env.Kubeconfig)
	ended := make(chan int, 1)
	go func() { ended <- command.Run(t.Context(), root) }()
	servertest.Until(t, "it says what it waits for", func() bool { return strings.Contains(errOut.String(), waits) })
	code := -1
	servertest.Until(t, "the control plane knows that the agent is silent, and it goes on", func() bool {
		clock.Step(time.Second)
		select {
		case code = <-ended:
			return true
		default:
			return false
		}
	})
	result := commandtest.Result{Code: code, Out: out.String(), Err: errOut.String()}
	for _, want := range []string{
		"the control plane takes cluster silent out, for up to 1m0s",
		waits,
		"its agent did not remove what the fleet ran in cluster silent; 1 object stays there:\n  ConfigMap default/kept\nkubectl delete",
	} {
		if result.Code != 0 || !strings.Contains(result.Err, want) {
			t.Errorf("it ends with %d and says %q, want %q", result.Code, result.Err, want)
		}
	}
	if result.Out != "cluster silent unregistered\n" || strings.Contains(result.Err, "default/gone") {
		t.Errorf("it prints %q and says %q", result.Out, result.Err)
	}
}

func identityOf(t *testing.T, hub client.Client) string {
	t.Helper()
	id, err := join.HubIdentity(t.Context(), hub)
	if err != nil || id == "" {
		t.Fatalf("the hub is %q: %v", id, err)
	}
	return id
}
