package execution

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

func TestWhatAWorkerFindsWhenItStarts(t *testing.T) {
	work := func(namespace, name string, leaving bool) client.Object {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer},
		}}
		if leaving {
			w.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		return w
	}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		work("karmada-es-eu-1", "stays", false), work("karmada-es-eu-1", "goes", true),
		work("karmada-es-gone", "stays", false), work("karmada-es-gone", "goes", true),
	).Build()
	cases := map[string]struct {
		cluster string
		want    []string
	}{
		"a cluster's worker takes all its Works":                {"eu-1", []string{"karmada-es-eu-1/goes", "karmada-es-eu-1/stays"}},
		"that of clusters that are gone takes those that leave": {"", []string{"karmada-es-gone/goes"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := testParts(nil, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			p.hub = hub
			all := newWorkers(p, p.opts.serves)
			all.running["eu-1"] = running{worker: all.assemble("eu-1")}
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			if err := all.assemble(tc.cluster).attach(t.Context(), queue); err != nil {
				t.Fatal(err)
			}
			var got []string
			for queue.Len() > 0 {
				req, _ := queue.Get()
				got = append(got, req.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAMembersWorkersAreShared: the Works of one namespace that wait for a member
// do not hold up those of others.
func TestAMembersWorkersAreShared(t *testing.T) {
	work := func(name string, annotations map[string]string) client.Object {
		return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-eu-1", Name: name, Annotations: annotations}}
	}
	of := func(namespace string) map[string]string {
		return map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotationKey: namespace, workv1alpha2.ResourceBindingNameAnnotationKey: "x"}
	}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		work("red1", of("red")), work("red2", of("red")), work("red3", of("red")), work("red4", of("red")),
		work("victim", of("victim")), work("role", map[string]string{workv1alpha2.ClusterResourceBindingAnnotationKey: "y"}), work("namespace", nil),
	).Build()
	queue := fairqueue.By(16, tenantOf(t.Context(), hub))("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	for _, name := range []string{"red1", "red2", "red3", "red4", "role", "namespace", "gone", "victim"} {
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "karmada-es-eu-1", Name: name}})
	}
	var got []string
	for range 8 {
		req, _ := queue.Get()
		got = append(got, req.Name)
	}
	if diff := cmp.Diff([]string{"red1", "role", "victim", "red2", "namespace", "red3", "gone", "red4"}, got); diff != "" {
		t.Errorf("handed out (-want +got):\n%s", diff)
	}
}

// TestWorksOfAMemberThatIsOutOfReach runs the loop with a registry without any
// connections.
func TestWorksOfAMemberThatIsOutOfReach(t *testing.T) {
	marked := &metav1.Time{Time: time.Unix(1, 0)}
	cases := map[string]struct {
		leaves     bool // the Cluster, and with it the Work
		want       reconcile.Result
		finalizers []string
	}{
		"a Work waits until its member is connected":      {false, reconcile.Result{RequeueAfter: waitqueue.SafetyNet}, []string{workv1alpha2.ExecutionControllerFinalizer}},
		"a Work goes with a cluster that leaves for good": {true, reconcile.Result{}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			work := testWork(manifestText)
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1", Finalizers: []string{clusterv1alpha1.ClusterControllerFinalizer}}}
			if tc.leaves {
				cluster.DeletionTimestamp, work.DeletionTimestamp = marked, marked
				work.Finalizers = append(work.Finalizers, "example.com/kept") // the fake removes what has none
			}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(cluster, work).Build()
			r := New(hub, members.New(members.Options{}), interpreter.Native(), nil, Options{})
			got, err := r.workers.assemble("eu-1").Reconcile(t.Context(), reconcile.Request{NamespacedName: workKey})
			if err != nil || got != tc.want {
				t.Errorf("Reconcile = %v, %v, want %v", got, err, tc.want)
			}
			if err := hub.Get(t.Context(), workKey, work); err != nil {
				t.Fatal(err)
			}
			finalizers := slices.DeleteFunc(work.Finalizers, func(f string) bool { return f == "example.com/kept" })
			if diff := cmp.Diff(tc.finalizers, finalizers, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
		})
	}
}

// waits reports whether a Work of the worker waits for a cause that matches. As a side effect, that one is released.
func waits(w *worker, match func(waitqueue.Cause) bool) bool {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	w.queue.Open(queue)
	w.queue.Release(match)
	return queue.Len() > 0
}
