package quota

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
)

// TestFiguresAreThereBeforeTheWorkloadIs: clients of Karmada look at what is used once a workload stands in a cluster, which
// takes less than figures are held back for. What comes after some rest is written at once, and of what comes in a row the
// first and the sum.
func TestFiguresAreThereBeforeTheWorkloadIs(t *testing.T) {
	limit := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"}, Spec: policyv1alpha1.FederatedResourceQuotaSpec{Overall: amounts("100", "4Gi")}}
	writes, refuse := 0, error(nil)
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(limit).WithObjects(limit).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if refuse != nil {
				return refuse
			}
			writes++
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		}}).Build()
	clk := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	r := New(hub, record.NewFakeRecorder(9), Options{Clock: clk})
	run := func() (reconcile.Result, error) {
		return r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(limit)})
	}
	const ms = time.Millisecond
	for i, step := range []struct {
		what   string
		after  time.Duration
		place  int32 // one more binding of so many replicas, of half a core each
		fails  bool
		used   string
		writes int
		again  time.Duration
	}{
		{what: "the first figures", writes: 1},
		{what: "nothing new", after: 10 * time.Second, writes: 1},
		{what: "after a rest", after: 10 * time.Second, place: 2, used: "1", writes: 2},
		{what: "another after a rest", after: 250 * ms, place: 2, used: "2", writes: 3},
		{what: "one that cannot be written", after: time.Second, place: 2, fails: true, used: "2", writes: 3},
		{what: "and then can", after: 5 * ms, used: "3", writes: 4},
		{what: "the second in a row", after: 10 * ms, place: 2, used: "3", writes: 4, again: 250 * ms},
		{what: "the third", after: 200 * ms, place: 2, used: "3", writes: 4, again: 250 * ms},
		{what: "one more, when the first alone would have been at rest", after: 200 * ms, place: 2, used: "3", writes: 4, again: 250 * ms},
		{what: "the sum of them", after: 250 * ms, used: "6", writes: 5},
		{what: "one right after it", after: 10 * ms, place: 2, used: "6", writes: 5, again: 250 * ms},
		{what: "and its end", after: 250 * ms, used: "7", writes: 6},
	} {
		clk.SetTime(clk.Now().Add(step.after))
		if step.place > 0 {
			if err := hub.Create(t.Context(), placed("shop", "web"+string(rune('a'+i)), step.place)); err != nil {
				t.Fatal(err)
			}
		}
		if refuse = nil; step.fails {
			refuse = errors.New("no")
		}
		result, err := run()
		if (err != nil) != step.fails {
			t.Fatalf("%s: %v", step.what, err)
		}
		got := &policyv1alpha1.FederatedResourceQuota{}
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(limit), got); err != nil {
			t.Fatal(err)
		}
		var used corev1.ResourceList // without memory, which nothing uses
		if step.used != "" {
			used = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(step.used)}
		}
		if diff := cmp.Diff(used, got.Status.OverallUsed); diff != "" {
			t.Errorf("%s: used (-want +got):\n%s", step.what, diff)
		}
		if writes != step.writes || result.RequeueAfter != step.again {
			t.Errorf("%s: %d writes, another look after %s; want %d, %s", step.what, writes, result.RequeueAfter, step.writes, step.again)
		}
	}
}
