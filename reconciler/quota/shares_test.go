package quota

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// brought is the Work of the share of shop/team of a cluster, which says this of it.
func brought(cluster, says string) *workv1alpha1.Work {
	key := client.ObjectKey{Namespace: "shop", Name: "team"}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-" + cluster, Name: plan.ShareName(key), Labels: map[string]string{
		policyv1alpha1.FederatedResourceQuotaNamespaceLabel: key.Namespace, policyv1alpha1.FederatedResourceQuotaNameLabel: key.Name,
	}}}
	if says != "" {
		work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: []byte(says)}}}
	}
	return work
}

// TestWhatClustersSay stands in the status, of those that have a share and said something.
// Another limit is there at once; what cannot be read is reported once.
func TestWhatClustersSay(t *testing.T) {
	const figures = `{"hard":{"cpu":"4","memory":"1Gi"},"used":{"cpu":"2","memory":"1Gi"}}`
	limit := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"}}
	limit.Spec.Overall = amounts("10", "4Gi")
	for _, cluster := range []string{"west", "east", "bad", "south"} {
		limit.Spec.StaticAssignments = append(limit.Spec.StaticAssignments, policyv1alpha1.StaticClusterAssignment{ClusterName: cluster, Hard: amounts("4", "1Gi")})
	}
	recorder := record.NewFakeRecorder(9)
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(limit).
		WithObjects(limit, brought("west", figures), brought("east", figures), brought("bad", `[]`), brought("south", ""), brought("north", figures)).Build()
	r := New(hub, recorder, Options{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))})
	key := client.ObjectKeyFromObject(limit)
	run := func() policyv1alpha1.FederatedResourceQuotaStatus {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		if err := hub.Get(t.Context(), key, limit); err != nil {
			t.Fatal(err)
		}
		return limit.Status
	}
	say := func(cluster string) policyv1alpha1.ClusterQuotaStatus {
		return policyv1alpha1.ClusterQuotaStatus{ClusterName: cluster, ResourceQuotaStatus: corev1.ResourceQuotaStatus{Hard: amounts("4", "1Gi"), Used: amounts("2", "1Gi")}}
	}
	want := policyv1alpha1.FederatedResourceQuotaStatus{
		Overall:          amounts("10", "4Gi"),
		AggregatedStatus: []policyv1alpha1.ClusterQuotaStatus{say("east"), say("west")},
	}
	if diff := cmp.Diff(want, run()); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	limit.Spec.Overall = amounts("12", "4Gi")
	if err := hub.Update(t.Context(), limit); err != nil {
		t.Fatal(err)
	}
	want.Overall = amounts("12", "4Gi")
	if diff := cmp.Diff(want, run()); diff != "" {
		t.Errorf("status of another limit (-want +got):\n%s", diff)
	}
	if len(recorder.Events) != 1 || !strings.HasPrefix(<-recorder.Events, "Warning AggregateStatusFailed read what is used of shares: cluster bad: ") {
		t.Error("what cannot be read is not told, or more than once")
	}
}

func TestShareChanges(t *testing.T) {
	before, now, other := brought("east", `{"hard":{"cpu":"4"}}`), brought("east", `{"hard":{"cpu":"4"},"used":{"cpu":"1"}}`), &workv1alpha1.Work{}
	for name, tc := range map[string]struct{ got, want bool }{
		"another figure":           {shareChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: now}), true},
		"the same":                 {shareChanges().Update(event.UpdateEvent{ObjectOld: now, ObjectNew: now}), false},
		"a share no more":          {shareChanges().Update(event.UpdateEvent{ObjectOld: now, ObjectNew: other}), true},
		"any other work":           {shareChanges().Update(event.UpdateEvent{ObjectOld: other, ObjectNew: other}), false},
		"its end":                  {shareChanges().Delete(event.DeleteEvent{Object: now}), true},
		"the end of another":       {shareChanges().Delete(event.DeleteEvent{Object: other}), false},
		"a share names its quota":  {len(ofShare(t.Context(), now)) == 1, true},
		"another names no quota":   {len(ofShare(t.Context(), other)) == 1, false},
		"a new one says nothing":   {shareChanges().Create(event.CreateEvent{Object: now}), false},
		"one that says what is so": {shareChanges().Update(event.UpdateEvent{ObjectOld: brought("east", ""), ObjectNew: before}), true},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %t, want %t", name, tc.got, tc.want)
		}
	}
}
