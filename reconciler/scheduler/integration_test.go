package scheduler_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/flotilla-io/flotilla/api/apps/v1alpha1"
	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/decider"
	"github.com/flotilla-io/flotilla/reconciler/rebalance"
	"github.com/flotilla-io/flotilla/reconciler/scheduler"
)

// shared is the server of the package.
var shared servertest.Shared

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(shared.Main(m))
}

type nobody struct{}

func (nobody) Event(runtime.Object, string, string, string) {}

// loops runs the scheduler and the rebalancers until stop is called.
func loops(t *testing.T, env *servertest.Env) (stop func()) {
	t.Helper()
	mgr, err := hub.NewManager(env.Config, scheme.New(), hub.Options{Log: logr.Discard(), SeveralPerProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	decider := decider.New(mgr.GetClient(), decider.Options{})
	for _, register := range []func() error{
		func() error { return bindings.Register(ctx, mgr) },
		func() error { return decider.Register(ctx, mgr) },
		func() error {
			return scheduler.New(mgr.GetClient(), decider, nobody{}, scheduler.Options{}).Register(mgr)
		},
		func() error { return rebalance.New(mgr.GetClient(), rebalance.Options{}).Register(mgr) },
	} {
		if err := register(); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// world is a hub whose clusters and bindings are written by hand.
type world struct {
	*testing.T
	hub client.Client
}

func (w world) do(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// cluster creates a cluster, or changes its capacity and label.
func (w world) cluster(name string, cores int64, tier string) {
	w.Helper()
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := w.hub.Get(w.Context(), client.ObjectKeyFromObject(c), c); client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	c.Spec.SyncMode, c.Labels = clusterv1alpha1.Pull, map[string]string{"tier": tier}
	if c.UID == "" {
		// As the cluster loop does, so that the Cluster stays until nothing is placed on it.
		c.Finalizers = []string{clusterv1alpha1.ClusterControllerFinalizer}
		w.do(w.hub.Create(w.Context(), c))
	} else {
		w.do(w.hub.Update(w.Context(), c))
	}
	c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}}
	c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(cores, resource.DecimalSI), corev1.ResourcePods: resource.MustParse("100"),
	}}
	w.do(w.hub.Status().Update(w.Context(), c))
}

// binding creates a binding with replicas of one core each, divided by capacity.
func (w world) binding(name string, replicas int32, change func(*workv1alpha2.ResourceBinding)) {
	w.Helper()
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name + "-deployment",
			Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource:            workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: name},
			Replicas:            replicas,
			ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
			Placement: &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
				ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
				ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
				WeightPreference:          &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
			}},
		},
	}
	if change != nil {
		change(b)
	}
	w.do(w.hub.Create(w.Context(), b))
}

// await waits until the binding is placed so, for that reason.
func (w world) await(name, want string) {
	w.Helper()
	got := ""
	err := wait.PollUntilContextTimeout(w.Context(), 20*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		b := &workv1alpha2.ResourceBinding{}
		if err := w.hub.Get(ctx, client.ObjectKey{Namespace: "default", Name: name + "-deployment"}, b); err != nil {
			return false, err
		}
		record, _ := placement.RecordOf(b)
		got = fmt.Sprintf("%s %s", placement.Text(b.Spec.Clusters), record.Reason)
		return got == want, nil
	})
	if err != nil {
		w.Fatalf("%s is %q, want %q: %v", name, got, want, err)
	}
}

// TestScheduling: the life of a few bindings on a real server.
func TestScheduling(t *testing.T) {
	env := shared.Env(t)
	w := world{t, env.Hub}
	stop := loops(t, env)

	// Not enough capacity; then there is.
	w.cluster("m1", 4, "silver")
	w.binding("web", 6, nil)
	w.await("web", "{} Unschedulable")
	w.cluster("m1", 9, "silver")
	w.await("web", "{m1:6} Success")

	// What was reserved for the first is not there for the second.
	w.binding("api", 4, nil)
	w.await("api", "{} Unschedulable")
	w.cluster("m2", 4, "silver")
	w.await("api", "{m1:2, m2:2} Success")

	// A rebalance considers all clusters as the cache has them: the witness
	// shows that it has the larger one.
	w.cluster("m2", 70, "silver")
	w.binding("witness", 30, func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}
	})
	w.await("witness", "{m2:30} Success")
	w.do(env.Hub.Create(t.Context(), &appsv1alpha1.WorkloadRebalancer{
		ObjectMeta: metav1.ObjectMeta{Name: "even"},
		Spec: appsv1alpha1.WorkloadRebalancerSpec{Workloads: []appsv1alpha1.ObjectReference{
			{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web"},
			{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "gone"},
		}},
	}))
	w.await("web", "{m1:1, m2:5} Success")

	// No cluster fits; then a label makes one fit.
	w.binding("db", 1, func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}
	})
	w.await("db", "{} NoClusterFit")
	w.cluster("m2", 70, "gold")
	w.await("db", "{m2:1} Success")

	// A cluster leaves: what ran there is placed elsewhere, and bindings that are not scheduled lose it, too.
	w.binding("kept", 2, func(b *workv1alpha2.ResourceBinding) {
		b.Labels = nil
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}, {Name: "m2", Replicas: 2}}
	})
	w.cluster("m1", 20, "silver")
	w.do(env.Hub.Delete(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m2"}}))
	w.await("kept", "{m1:2} ")
	w.await("db", "{} NoClusterFit")
	w.await("web", "{m1:6} Success")
	w.await("api", "{m1:4} Success")
	w.await("witness", "{} NoClusterFit")
	env.QuietRevision(t)

	// A restart writes nothing.
	stop()
	env.Emptied(t)
	before := env.QuietRevision(t)
	stop = loops(t, env)
	defer stop()
	if after := env.QuietRevision(t); after != before {
		t.Errorf("a restart moved the store from %d to %d", before, after)
	}
}
