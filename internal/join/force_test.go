package join_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/join"
)

const space = "karmada-es-eu-1"

// stranded returns a hub with a cluster whose member is gone for good, and its
// Works, one of which is being deleted already.
func stranded(t *testing.T) client.WithWatch {
	t.Helper()
	work := func(name string) *workv1alpha1.Work {
		return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: space, Name: name, Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer},
		}}
	}
	leaving := work("leaving")
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}, work("one"), work("two"), leaving,
		&clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: "eu-1", Finalizers: []string{clusterv1alpha1.ClusterControllerFinalizer}},
			Spec:       clusterv1alpha1.ClusterSpec{ID: "ours", SyncMode: clusterv1alpha1.Push},
		},
	).Build()
}

// executed runs the execution loop on all Works after each write: it adds its
// finalizer to those that are not being deleted.
func executed(under client.WithWatch) client.WithWatch {
	loop := func(ctx context.Context, err error) error {
		works := &workv1alpha1.WorkList{}
		if listed := under.List(ctx, works); listed != nil {
			return listed
		}
		for i := range works.Items {
			work := &works.Items[i]
			if work.DeletionTimestamp.IsZero() && !slices.Contains(work.Finalizers, workv1alpha2.ExecutionControllerFinalizer) {
				work.Finalizers = append(work.Finalizers, workv1alpha2.ExecutionControllerFinalizer)
				if updated := under.Update(ctx, work); updated != nil {
					return updated
				}
			}
		}
		return err
	}
	return interceptor.NewClient(under, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return loop(ctx, c.Patch(ctx, obj, patch, opts...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return loop(ctx, c.Delete(ctx, obj, opts...))
		},
	})
}

// left returns the objects that are still on the hub, without those that do not
// matter.
func left(t *testing.T, hub client.Client) []string {
	t.Helper()
	var out []string
	works, clusters := &workv1alpha1.WorkList{}, &clusterv1alpha1.ClusterList{}
	if err := errors.Join(hub.List(t.Context(), works), hub.List(t.Context(), clusters)); err != nil {
		t.Fatal(err)
	}
	for _, w := range works.Items {
		out = append(out, fmt.Sprint("Work ", w.Name, " ", w.Finalizers))
	}
	for _, c := range clusters.Items {
		out = append(out, fmt.Sprint("Cluster ", c.Name, " ", c.Finalizers))
	}
	return out
}

func TestAForcedUnjoinThatIsCutOffAnywhereIsFinishedByTheNext(t *testing.T) {
	for step := 1; ; step++ {
		hub, writes := stranded(t), 0
		o := join.UnjoinOptions{Name: "eu-1", Hub: cut(executed(hub), &writes, step), Force: true, Wait: time.Millisecond}
		err := join.Unjoin(t.Context(), o)
		done := err == nil
		if !done && !errors.Is(err, errCut) {
			t.Fatalf("step %d: %v", step, err)
		}
		works := &workv1alpha1.WorkList{}
		if err := hub.List(t.Context(), works); err != nil {
			t.Fatal(err)
		}
		for _, w := range works.Items {
			if w.DeletionTimestamp.IsZero() && len(w.Finalizers) == 0 {
				t.Errorf("cut off at step %d, nobody looks after Work %s, which stays", step, w.Name)
			}
		}
		o.Hub = executed(hub)
		if err := join.Unjoin(t.Context(), o); apierrors.IsNotFound(err) != done || !done && err != nil {
			t.Fatalf("after it was cut off at step %d: %v", step, err)
		}
		if left := left(t, hub); len(left) != 0 {
			t.Errorf("after it was cut off at step %d there is left: %v", step, left)
		}
		if done {
			if step < 7 {
				t.Errorf("only %d writes", step)
			}
			return
		}
	}
}

func TestItself(t *testing.T) {
	system := func(uid string) client.Reader {
		return fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: types.UID(uid)}}).Build()
	}
	none := fake.NewClientBuilder().WithScheme(scheme.New()).Build()
	silent := interceptor.NewClient(none, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("no answer")
		},
	})
	for name, tc := range map[string]struct {
		hub, member client.Reader
		want        bool
	}{
		"two clusters":                   {system("a"), system("b"), false},
		"one cluster":                    {system("a"), system("a"), true},
		"a hub that does not say":        {silent, system("a"), true},
		"a member that does not say":     {system("a"), silent, true},
		"a hub that is no whole cluster": {none, system("a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := join.Itself(t.Context(), tc.hub, tc.member); got != tc.want {
				t.Errorf("Itself = %t", got)
			}
		})
	}
}
