package reconciler_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/reconciler"
)

// TestOneRunIsWrittenDown: of a control plane whose loops are off, and loops that run
// apart from it, only those write down a run: agents would take the other one for a
// later run of the same loops, and the marks that they make of it for what was lost.
func TestOneRunIsWrittenDown(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a control plane")
	}
	hub := hubs.Env(t)
	for _, controllers := range [][]string{{"-*"}, {"execution", "cluster", "orphans"}} {
		hub.Loops(t, func(ctx context.Context, mgr ctrl.Manager) error {
			return reconciler.Register(ctx, mgr, reconciler.Options{Controllers: controllers})
		})
	}
	pull := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "pull"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	if err := hub.Hub.Create(t.Context(), pull); err != nil {
		t.Fatal(err)
	}
	runs := func(ctx context.Context) ([]hubclaim.Run, error) {
		system := &corev1.Namespace{}
		err := hub.Hub.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system)
		return hubclaim.ParseHistory(system.Annotations[clusterv1alpha1.HistoryAnnotation]).Runs, err
	}
	space := workv1alpha2.ExecutionNamespace(pull.Name)
	change := func(ctx context.Context) error {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}
		if err := hub.Hub.Create(ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		return hub.Hub.Create(ctx, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: space, GenerateName: "w"}})
	}
	servertest.Eventually(t, "a run is written down, once something changes for the cluster", func(ctx context.Context) error {
		err := change(ctx)
		found, more := runs(ctx)
		if err = errors.Join(err, more); err == nil && (len(found) == 0 || found[0].Began == 0) {
			err = errors.New("none is")
		}
		return err
	})
	if err := change(t.Context()); err != nil {
		t.Fatal(err)
	}
	hub.QuietRevision(t)
	if found, err := runs(t.Context()); err != nil || len(found) != 1 {
		t.Errorf("the runs are %+v, %v, want one", found, err)
	}
}
