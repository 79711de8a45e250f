package template

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// TestQuotaHoldsAnEditBack: an edit of a template that a quota refuses, while its placement
// stays, is tried again after a while, and not all the time.
func TestQuotaHoldsAnEditBack(t *testing.T) {
	refusal := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: workv1alpha2.BindingReasonQuotaExceeded, Message: "quota team: cpu: 3 of 2"}}
	got := loop.As(reported(policyv1alpha1.EventReasonApplyPolicyFailed, fmt.Errorf("write the binding: %w", refusal)), "")
	want := &loop.Error{Reason: policyv1alpha1.EventReasonApplyPolicyFailed, Class: loop.ClassWaiting, After: quotaPause}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(loop.Error{}, "Err")); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// TestOverQuota: a binding whose first placement a quota refuses is created all the
// same, without the placement, and records why.
func TestOverQuota(t *testing.T) {
	refusal := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: workv1alpha2.BindingReasonQuotaExceeded, Message: "quota team: cpu: 3 of 2",
	}}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if len(obj.(workv1alpha2.Binding).BindingSpec().Clusters) > 0 {
				return refusal
			}
			return c.Create(ctx, obj, opts...)
		},
	}).Build()
	withdrawn := 0
	p := writer{
		hub: hub, written: writecache.New[workv1alpha2.Binding](clocktesting.NewFakePassiveClock(noon)),
		withdraw: func(workv1alpha2.Binding) { withdrawn++ },
	}
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
	decision := placement.Decision{
		Clusters: []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 3}}, AppliedPlacement: "{}",
		Record: placement.Record{Reason: workv1alpha2.BindingReasonSuccess, At: metav1.NewTime(noon)},
	}
	decision.Put(b)
	s := &state{key: key(), desired: b, decision: &decision}
	bound, err := p.bind(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	got := &workv1alpha2.ResourceBinding{}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(b), got); err != nil {
		t.Fatal(err)
	}
	record, _ := placement.RecordOf(got)
	_, applied := got.Annotations[policyv1alpha1.PolicyPlacementAnnotation]
	want := []any{true, 1, "{}", workv1alpha2.BindingReasonQuotaExceeded, "quota team: cpu: 3 of 2", false}
	is := []any{bound, withdrawn, placement.Text(got.Spec.Clusters), record.Reason, record.Message, applied}
	if diff := cmp.Diff(want, is); diff != "" {
		t.Errorf("bound, withdrawn, clusters, reason, message, placement counts as applied (-want +got):\n%s", diff)
	}
}

// TestAnEditThatAQuotaHoldsBackIsReported: the binding stays as it is, and records why, so that the edit does not look
// done.
func TestAnEditThatAQuotaHoldsBackIsReported(t *testing.T) {
	refusal := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: workv1alpha2.BindingReasonQuotaExceeded, Message: "quota team: cpu: 20 of 2",
	}}
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", UID: "u", Generation: 1}}
	placement.Decision{
		Clusters: []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 3}}, AppliedPlacement: "{}",
		Record: placement.Record{Reason: workv1alpha2.BindingReasonSuccess, At: metav1.NewTime(noon)},
	}.Put(b)
	writes := 0
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(b).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if obj.(workv1alpha2.Binding).BindingSpec().ReplicaRequirements != nil {
				return refusal
			}
			writes++
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	clock := clocktesting.NewFakePassiveClock(noon.Add(time.Hour))
	p := writer{hub: hub, written: writecache.New[workv1alpha2.Binding](clock), withdraw: func(workv1alpha2.Binding) {}, clock: clock}
	for range 2 { // the second pass has nothing new to record
		stored := &workv1alpha2.ResourceBinding{}
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(b), stored); err != nil {
			t.Fatal(err)
		}
		desired := stored.DeepCopy()
		desired.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("20")}}
		s := &state{key: key(), binding: stored, desired: desired}
		if _, err := p.bind(t.Context(), s); loop.As(err, "").Class != loop.ClassWaiting {
			t.Fatalf("it is not asked for again: %v", err)
		}
	}
	got := &workv1alpha2.ResourceBinding{}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(b), got); err != nil {
		t.Fatal(err)
	}
	record, _ := placement.RecordOf(got)
	want := []any{1, "m1", workv1alpha2.BindingReasonQuotaExceeded, "the latest version of its template is held back: quota team: cpu: 20 of 2"}
	if diff := cmp.Diff(want, []any{writes, got.Spec.Clusters[0].Name, record.Reason, record.Message}); diff != "" || got.Spec.ReplicaRequirements != nil {
		t.Errorf("writes, cluster, reason, message (-want +got):\n%s", diff)
	}
}
