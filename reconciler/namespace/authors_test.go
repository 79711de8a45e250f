package namespace

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// TestWhatIsWrittenMeanwhileKeepsItsAuthor: who writes a Work while its author is taken
// off is not taken for the control plane.
func TestWhatIsWrittenMeanwhileKeepsItsAuthor(t *testing.T) {
	const alice, evil = `[{"user":"alice"}]`, `{"kind":"evil"}`
	meanwhile := func(context.Context, client.WithWatch) {}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-eu-1"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "n"}},
	).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			meanwhile(ctx, c)
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	check := func() error { // by a loop that has written nothing itself
		r := New(hub, Options{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))})
		_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "shop"}})
		return err
	}
	stands := func() *workv1alpha1.Work {
		t.Helper()
		var works workv1alpha1.WorkList
		if err := hub.List(t.Context(), &works, client.InNamespace("karmada-es-eu-1")); err != nil || len(works.Items) != 1 {
			t.Fatal(err, works.Items)
		}
		return &works.Items[0]
	}
	if err := check(); err != nil {
		t.Fatal(err)
	}
	work := stands()
	metav1.SetMetaDataAnnotation(&work.ObjectMeta, workv1alpha2.AppliedByAnnotation, alice)
	if err := hub.Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	meanwhile = func(ctx context.Context, c client.WithWatch) {
		work := stands()
		work.Spec.Workload.Manifests[0].Raw = []byte(evil)
		if err := c.Update(ctx, work); err != nil {
			t.Error(err)
		}
	}
	if err := check(); err != nil && !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
	if work := stands(); strings.Contains(string(work.Spec.Workload.Manifests[0].Raw), "evil") && work.Annotations[workv1alpha2.AppliedByAnnotation] != alice {
		t.Errorf("alice's manifest is the control plane's: %v", work.Annotations)
	}
	meanwhile = func(context.Context, client.WithWatch) {}
	if err := check(); err != nil {
		t.Fatal(err)
	}
	if work := stands(); strings.Contains(string(work.Spec.Workload.Manifests[0].Raw), "evil") || work.Annotations[workv1alpha2.AppliedByAnnotation] != "" {
		t.Errorf("the work stays %s, of %v", work.Spec.Workload.Manifests[0].Raw, work.Annotations)
	}
}
