package namespace

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

// TestAClusterThatFindsItsNamespace: a namespace of Works that was there before its
// cluster, of one that left or of somebody's making, keeps nothing from the cluster. A
// restart writes nothing.
func TestAClusterThatFindsItsNamespace(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a control plane")
	}
	env := servertest.New(t)
	create := func(obj client.Object) {
		t.Helper()
		if err := env.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	space := func(cluster string) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workv1alpha2.ExecutionNamespace(cluster)}}
	}
	cluster := func(name string) client.Object {
		return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	}
	has := func(name string) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
			var works workv1alpha1.WorkList
			err := env.Hub.List(ctx, &works, client.InNamespace(workv1alpha2.ExecutionNamespace(name)))
			return len(works.Items) == 1, err
		})
		if err != nil {
			t.Fatalf("%s does not get the namespace: %v", name, err)
		}
	}
	run := func() (stop func() error) {
		return env.StartLoops(t, func(ctx context.Context, mgr ctrl.Manager) error {
			return New(mgr.GetClient(), Options{}).Register(ctx, mgr)
		})
	}
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	create(space("early"))
	create(cluster("early"))
	create(space("late")) // left over, and seen before its cluster is
	stop := run()
	has("early")
	create(cluster("late"))
	has("late")
	env.Emptied(t)
	before := env.QuietRevision(t)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	stop = run()
	if after := env.QuietRevision(t); after != before {
		t.Errorf("a restart writes %v", env.Written(t, before))
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// TestClustersThatAreThereAtAStart have all namespaces looked at for them anyway.
func TestClustersThatAreThereAtAStart(t *testing.T) {
	for name, tc := range map[string]struct {
		e    event.CreateEvent
		want bool
	}{
		"one that joins":        {event.CreateEvent{Object: &clusterv1alpha1.Cluster{}}, true},
		"one of the first list": {event.CreateEvent{Object: &clusterv1alpha1.Cluster{}, IsInInitialList: true}, false},
	} {
		if got := clusterChanges().Create(tc.e); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
