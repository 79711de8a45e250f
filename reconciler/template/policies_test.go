package template

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// claimedOnce returns a policy loop with one binding that policy p claims, and
// what it sends to the template loop.
func claimedOnce(t *testing.T, p *policyv1alpha1.PropagationPolicy) (*policies, workqueue.TypedRateLimitingInterface[templatestore.Key]) {
	t.Helper()
	b := bindingOf("apps/v1")
	propagation.ClaimOf(p).Set(b)
	byClaim := func(obj client.Object) []string {
		ref, _ := propagation.Claimed(obj)
		return []string{ref.ID}
	}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(b, p).
		WithIndex(&workv1alpha2.ResourceBinding{}, bindings.ByClaim, byClaim).
		WithIndex(&workv1alpha2.ClusterResourceBinding{}, bindings.ByClaim, byClaim).Build()
	var inbox loop.Inbox[templatestore.Key]
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[templatestore.Key](time.Second, time.Second))
	t.Cleanup(queue.ShutDown)
	if err := inbox.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	return newPolicies(hub, &templatestore.Store{}, &inbox, Options{Clock: clocktesting.NewFakePassiveClock(noon)}), queue
}

// TestAbandoned: the templates that a policy had claimed are enqueued when the policy
// is gone, or is another one, without its claims having been removed.
func TestAbandoned(t *testing.T) {
	relabelled := policy("p", "apps/v1")
	relabelled.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] = "id-2"
	cases := map[string]struct {
		after *policyv1alpha1.PropagationPolicy // nil: gone
		want  int
	}{
		"gone":             {nil, 1},
		"made anew unseen": {relabelled, 1},
		"edited":           {policy("p", "batch/v1"), 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := policy("p", "apps/v1")
			p, sent := claimedOnce(t, before)
			requests := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
			defer requests.ShutDown()
			if tc.after == nil {
				p.policyEvents().Delete(t.Context(), event.DeleteEvent{Object: before}, requests)
			} else {
				p.policyEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: tc.after}, requests)
			}
			if diff := cmp.Diff([]int{tc.want, 1}, []int{sent.Len(), requests.Len()}); diff != "" {
				t.Errorf("templates, policies to look at (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReleaseReportsOnce: the policy is reconciled for each template that lost its claim,
// and must not enqueue all the others again each time.
func TestReleaseReportsOnce(t *testing.T) {
	leaving := deleted(policy("p"))
	leaving.UID, leaving.Finalizers = types.UID("p-1"), []string{policyv1alpha1.PropagationPolicyControllerFinalizer}
	p, sent := claimedOnce(t, leaving)
	req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(leaving)}
	for range 2 {
		if err := p.release(t.Context(), req, leaving); err != nil {
			t.Fatal(err)
		}
		if sent.Len() == 1 {
			key, _ := sent.Get()
			sent.Done(key)
			continue
		}
		if sent.Len() != 0 {
			t.Errorf("%d templates were sent", sent.Len())
		}
		return
	}
	t.Error("the same template was sent twice")
}
