package quotashare

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// TestARestartWritesNothing where all is as it should be, and what somebody undoes comes back.
func TestARestartWritesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a control plane")
	}
	env := servertest.New(t)
	ns := env.Namespace(t)
	q := limited(map[string]string{"east": "4"})
	q.Namespace, q.UID, q.Spec.Overall = ns, "", q.Spec.StaticAssignments[0].Hard
	space := workv1alpha2.ExecutionNamespace("east")
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}},
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}, q,
	} {
		if err := env.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	run := func() (stop func() error) {
		return env.StartLoops(t, func(_ context.Context, mgr ctrl.Manager) error {
			return New(mgr.GetClient(), record.NewFakeRecorder(10), Options{}).Register(mgr)
		})
	}
	key := client.ObjectKey{Namespace: space, Name: plan.ShareName(client.ObjectKeyFromObject(q))}
	work := &workv1alpha1.Work{}
	stop := run()
	servertest.Eventually(t, "the share", func(ctx context.Context) error { return env.Hub.Get(ctx, key, work) })
	env.Emptied(t)
	before := env.QuietRevision(t)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	stop = run()
	if after := env.QuietRevision(t); after != before {
		t.Errorf("a restart writes %v", env.Written(t, before))
	}

	edited := work.DeepCopy()
	edited.Spec.Workload.Manifests = nil
	if err := env.Hub.Patch(t.Context(), edited, client.MergeFrom(work)); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "what somebody undid", func(ctx context.Context) error {
		err := env.Hub.Get(ctx, key, work)
		if len(work.Spec.Workload.Manifests) != 1 {
			err = errors.Join(err, errors.New("it is still empty"))
		}
		return err
	})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}
