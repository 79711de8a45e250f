package unifiedauth

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/access"
)

// stage is a hub with a cluster that applies as the author, and a namespace in which
// alice may edit.
type stage struct {
	client.WithWatch
	meanwhile func(ctx context.Context, c client.WithWatch) // before a patch
}

func newStage() *stage {
	s := &stage{}
	s.WithWatch = fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", UID: "c", Annotations: map[string]string{clusterv1alpha1.ApplyAsAnnotation: clusterv1alpha1.ApplyAsAuthor}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-eu"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "n"}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "edit"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "alice"}},
		},
	).WithIndex(&workv1alpha1.Work{}, rightsBySource, sourceOf).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if s.meanwhile != nil {
				s.meanwhile(ctx, c)
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	return s
}

// look has the rights of the namespace brought by a loop that has written nothing
// itself.
func (s *stage) reconcile(t *testing.T) error {
	t.Helper()
	r := newRights(New(s, record.NewFakeRecorder(10), Options{}))
	r.reach.changed(nil, by("eu", "shop"))
	_, err := r.Reconcile(t.Context(), request("", access.In("shop")))
	return err
}

func (s *stage) work(t *testing.T) *workv1alpha1.Work {
	t.Helper()
	var works workv1alpha1.WorkList
	if err := s.List(t.Context(), &works, client.InNamespace("karmada-es-eu")); err != nil || len(works.Items) != 1 {
		t.Fatal(err, works.Items)
	}
	return &works.Items[0]
}

// TestWhatIsWrittenMeanwhileKeepsItsAuthor: who writes a Work while its author is taken
// off is not taken for the control plane.
func TestWhatIsWrittenMeanwhileKeepsItsAuthor(t *testing.T) {
	const alice, evil = `[{"user":"alice"}]`, `{"kind":"evil"}`
	s := newStage()
	if err := s.reconcile(t); err != nil {
		t.Fatal(err)
	}
	work := s.work(t)
	metav1.SetMetaDataAnnotation(&work.ObjectMeta, workv1alpha2.AppliedByAnnotation, alice)
	if err := s.Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	s.meanwhile = func(ctx context.Context, c client.WithWatch) {
		work := s.work(t)
		work.Spec.Workload.Manifests[0].Raw = []byte(evil)
		if err := c.Update(ctx, work); err != nil {
			t.Error(err)
		}
	}
	if err := s.reconcile(t); err != nil && !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
	if work := s.work(t); strings.Contains(string(work.Spec.Workload.Manifests[0].Raw), "evil") && work.Annotations[workv1alpha2.AppliedByAnnotation] != alice {
		t.Errorf("alice's manifest is the control plane's: %v", work.Annotations)
	}
	s.meanwhile = nil
	if err := s.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if work := s.work(t); strings.Contains(string(work.Spec.Workload.Manifests[0].Raw), "evil") || work.Annotations[workv1alpha2.AppliedByAnnotation] != "" {
		t.Errorf("the work stays %s, of %v", work.Spec.Workload.Manifests[0].Raw, work.Annotations)
	}
}

// TestRightsAreNotHeldBack: who may write Works neither keeps rights in a member that
// are taken away, nor has the Work that takes them away go without them.
func TestRightsAreNotHeldBack(t *testing.T) {
	s := newStage()
	if err := s.reconcile(t); err != nil {
		t.Fatal(err)
	}
	work := s.work(t)
	work.Spec.SuspendDispatching, work.Spec.PreserveResourcesOnDeletion = ptr.To(true), ptr.To(true)
	work.OwnerReferences, work.Finalizers = nil, nil
	if err := s.Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	if err := s.reconcile(t); err != nil {
		t.Fatal(err)
	}
	work = s.work(t)
	if ptr.Deref(work.Spec.SuspendDispatching, false) || ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) {
		t.Errorf("the work is held back: %+v, %+v", work.Spec.SuspendDispatching, work.Spec.PreserveResourcesOnDeletion)
	}
	if owner := metav1.GetControllerOf(work); owner == nil || owner.UID != "c" || len(work.Finalizers) != 1 {
		t.Errorf("the work belongs to %v, with the finalizers %v", owner, work.Finalizers)
	}
	version := work.ResourceVersion
	if err := s.reconcile(t); err != nil || s.work(t).ResourceVersion != version {
		t.Errorf("written again: %v", err)
	}
}
