package quota

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func placed(namespace, name string, replicas int32) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1}}
	b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("500m"), "nvidia.com/gpu": resource.MustParse("1"),
	}}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "a", Replicas: replicas}}
	return b
}

func TestFigures(t *testing.T) {
	limit := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"}, Spec: policyv1alpha1.FederatedResourceQuotaSpec{Overall: amounts("10", "4Gi")}}
	writes := 0
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(limit).
		WithObjects(limit, placed("shop", "web", 3), placed("shop", "db", 1), placed("bank", "web", 9)).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			writes++
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		}}).Build()
	clk := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	r := New(hub, record.NewFakeRecorder(9), Options{Clock: clk})
	key := client.ObjectKeyFromObject(limit)
	run := func(wantCPU string, wantWrites int, wantWait bool) {
		t.Helper()
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		if err != nil {
			t.Fatal(err)
		}
		got := &policyv1alpha1.FederatedResourceQuota{}
		if err := hub.Get(t.Context(), key, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(wantCPU)}, got.Status.OverallUsed); diff != "" {
			t.Errorf("used (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(got.Spec.Overall, got.Status.Overall); diff != "" {
			t.Errorf("overall (-want +got):\n%s", diff)
		}
		if writes != wantWrites || (result.RequeueAfter > 0) != wantWait {
			t.Errorf("%d writes, another look after %s; want %d, %t", writes, result.RequeueAfter, wantWrites, wantWait)
		}
	}
	run("2", 1, false) // at once
	run("2", 1, false) // unchanged is no write
	if err := hub.Create(t.Context(), placed("shop", "more", 4)); err != nil {
		t.Fatal(err)
	}
	run("2", 1, true) // more may come
	clk.SetTime(clk.Now().Add(defaultWait))
	run("4", 2, false)
	if err := hub.Delete(t.Context(), placed("shop", "web", 3)); err != nil {
		t.Fatal(err)
	}
	run("4", 2, true)
	clk.SetTime(clk.Now().Add(defaultWait))
	run("2500m", 3, false)
	if requests := r.of(t.Context(), placed("bank", "web", 1)); len(requests) != 0 {
		t.Errorf("a binding without a quota asks for %v", requests)
	}
	if requests := r.of(t.Context(), placed("shop", "web", 1)); len(requests) != 1 || requests[0].NamespacedName != key {
		t.Errorf("a binding asks for %v", requests)
	}
}

// TestFiguresThatAreRefused: they are reported once; a server that is away is not.
func TestFiguresThatAreRefused(t *testing.T) {
	limit := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"}, Spec: policyv1alpha1.FederatedResourceQuotaSpec{Overall: amounts("10", "4Gi")}}
	var refusal error
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(limit).WithObjects(limit).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if refusal != nil {
				return refusal
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		}}).Build()
	events := record.NewFakeRecorder(9)
	r := New(hub, events, Options{Wait: time.Nanosecond})
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "federatedresourcequotas"}, "team", errors.New("no"))
	for _, refusal = range []error{errors.New("the server is away"), forbidden, forbidden} {
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(limit)}); err == nil {
			t.Errorf("%v: the loop goes on", refusal)
		}
	}
	want := []string{`Warning CollectOverallStatusFailed federatedresourcequotas "team" is forbidden: no`}
	var got []string
	for len(events.Events) > 0 {
		got = append(got, <-events.Events)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestUsageChanges(t *testing.T) {
	next := placed("shop", "web", 4)
	next.Generation = 2
	idle := placed("shop", "web", 0)
	for name, tc := range map[string]struct{ got, want bool }{
		"a binding that uses something":    {usageChanges().Create(event.CreateEvent{Object: next}), true},
		"a binding that is placed nowhere": {usageChanges().Create(event.CreateEvent{Object: idle}), false},
		"another spec":                     {usageChanges().Update(event.UpdateEvent{ObjectOld: idle, ObjectNew: next}), true},
		"another status":                   {usageChanges().Update(event.UpdateEvent{ObjectOld: next, ObjectNew: next}), false},
		"its end":                          {usageChanges().Delete(event.DeleteEvent{Object: next}), true},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %t, want %t", name, tc.got, tc.want)
		}
	}
}

func TestAQuotaThatIsGone(t *testing.T) {
	r := New(fake.NewClientBuilder().WithScheme(scheme.New()).Build(), record.NewFakeRecorder(9), Options{})
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "team"}}); err != nil {
		t.Error(err)
	}
}
