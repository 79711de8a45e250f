package execution

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// TestWhoseAnObjectIs: objects that name the Work and may belong to another hub.
func TestWhoseAnObjectIs(t *testing.T) {
	stamped := func(text, hub, work string) string {
		text = strings.Replace(text, `"labels":{`, `"labels":{"work.karmada.io/permanent-id":"`+work+`",`, 1)
		if hub != "" {
			text = strings.Replace(text, `"annotations":{`, `"annotations":{"work.flotilla.io/hub":"`+hub+`",`, 1)
		}
		return text
	}
	fresh, contested := hubclaim.Standing{Hub: "one"}, hubclaim.Standing{Hub: "one", Contested: true}
	for name, tc := range map[string]struct {
		standing hubclaim.Standing
		live     string
		policy   string // conflict resolution; empty: abort
		applied  []string
		failed   string
		removed  []string
	}{
		"this hub's": {
			fresh, stamped(manifestText, "one", "w-1"), "", []string{"apply web"}, "", []string{"delete web u"},
		},
		"applied before hubs said so": {
			fresh, stamped(manifestText, "", "w-1"), "", []string{"apply web"}, "", []string{"delete web u"},
		},
		"another hub's": {
			fresh, stamped(manifestText, "two", "w-2"), "", []string{"get web"}, "belongs to the hub with the identity two", nil,
		},
		"another hub's, and the policy takes it over": {
			fresh, stamped(manifestText, "two", "w-2"), workv1alpha2.ResourceConflictResolutionOverwrite, []string{"get web", "apply web"}, "", nil,
		},
		"applied long ago for a Work of another id": {
			fresh, stamped(manifestText, "", "w-2"), "", []string{"apply web"}, "", nil,
		},
		"the same, in a member that was another hub's": {
			contested, stamped(manifestText, "", "w-2"), "", []string{"get web"}, "not managed by Flotilla", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := parse(t, tc.live)
			live.SetUID("u")
			seen := members.MetadataOf(live)
			seen.Owned = "owned"
			e := &edge{presence: members.Present, observed: seen, live: live, standing: tc.standing}
			w := testWorker(e, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			text := manifestText
			if tc.policy != "" {
				text = strings.Replace(text, `"annotations":{`, `"annotations":{"work.karmada.io/conflict-resolution":"`+tc.policy+`",`, 1)
			}
			work := testWork(text)
			work.Labels = map[string]string{workv1alpha2.WorkPermanentIDLabel: "w-1"}
			work.Status.Applied = []workv1alpha1.AppliedHash{{Desired: "older", Observed: "owned"}}
			s := &state{key: workKey, work: work, member: e}
			if _, err := w.reader.connect(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if _, err := w.applier.apply(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.applied, e.asked); diff != "" {
				t.Errorf("asked of the member (-want +got):\n%s", diff)
			}
			if (s.objects[0].failed == nil) != (tc.failed == "") || tc.failed != "" && !strings.Contains(s.objects[0].failed.Error(), tc.failed) {
				t.Errorf("failed with %v, want %q", s.objects[0].failed, tc.failed)
			}
			if e.sent != nil && e.sent.GetAnnotations()[workv1alpha2.HubAnnotation] != "one" {
				t.Errorf("what was applied does not say by whom: %v", e.sent.GetAnnotations())
			}

			e.asked = nil
			if err := w.lifetime.remover.remove(t.Context(), s, &s.objects[0].Manifest); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.removed, e.asked); diff != "" {
				t.Errorf("removed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNamespaceOfSomebodyElse: an existing namespace is used as it is. The Work
// counts as applied and reports that, without a warning, and is reconciled again later, as the namespace
// may be deleted.
func TestNamespaceOfSomebodyElse(t *testing.T) {
	const ours = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"karmada.io/managed":"true"},` +
		`"annotations":{"work.karmada.io/namespace":"karmada-es-eu-1","work.karmada.io/name":"web"}}}`
	cases := map[string]struct{ live, note string }{
		"it is nobody's": {
			`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","uid":"u"}}`,
			"Namespace shop already exists in the cluster and is not managed by Flotilla",
		},
		"it is another hub's": {
			strings.Replace(ours, `"annotations":{`, `"annotations":{"work.flotilla.io/hub":"two",`, 1),
			"Namespace shop in the cluster belongs to the hub with the identity two",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := &edge{presence: members.Absent, live: parse(t, tc.live), standing: hubclaim.Standing{Hub: "one", Contested: true}}
			w := testWorker(e, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			s := &state{key: workKey, work: testWork(ours), member: e}
			next, err := loopOf(t, w, s)
			if err != nil || s.problem() != nil || next.After != 30*time.Second {
				t.Errorf("error %v, problem %v, looks again after %s", err, s.problem(), next.After)
			}
			reported := &events{}
			announce(reported, s)
			got := meta.FindStatusCondition(s.status.Conditions, workv1alpha1.WorkApplied)
			want := &metav1.Condition{
				Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, Reason: workv1alpha1.WorkAppliedSuccessfulReason, ObservedGeneration: 2,
				Message: workv1alpha1.WorkAppliedSuccessfulMessage + "; " + tc.note + ": it is used as it is, and stays when the one here goes",
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" || len(reported.reported) > 0 {
				t.Errorf("reported %v, condition (-want +got):\n%s", reported.reported, diff)
			}
		})
	}
}

// TestNamespaceOfSomebodyElseThatGoes: nothing can be created in a namespace that is being deleted. The condition
// names what the Work waits for, which ends soon after the namespace is gone, and calls it no failure.
func TestNamespaceOfSomebodyElseThatGoes(t *testing.T) {
	const ours = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"karmada.io/managed":"true"}}}`
	live := parse(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","uid":"u","deletionTimestamp":"2026-01-01T00:00:00Z"}}`)
	e := &edge{presence: members.Absent, live: live, standing: hubclaim.Standing{Hub: "one"}}
	w := testWorker(e, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	s := &state{key: workKey, work: testWork(ours), member: e}
	next, err := loopOf(t, w, s)
	if err != nil || next.After != 5*time.Second {
		t.Errorf("error %v, looks again after %s", err, next.After)
	}
	const want = "Namespace shop is being deleted in the cluster: it is made once it is gone; if it stays, look at its finalizers there"
	if got := s.problem(); got == nil || got.Error() != want {
		t.Errorf("problem %v, want %s", got, want)
	}
	got := meta.FindStatusCondition(s.status.Conditions, workv1alpha1.WorkApplied)
	if got == nil || got.Status != metav1.ConditionFalse || got.Message != "waits, as "+want {
		t.Errorf("condition %+v", got)
	}
}

// TestANamespaceThatIsMissing: a Work whose namespace is missing enqueues the Work of the namespace, which
// may have used an existing one as it was.
func TestANamespaceThatIsMissing(t *testing.T) {
	e := &edge{presence: members.Absent, refuse: fmt.Errorf("%w: shop", members.ErrNoNamespace)}
	w := testWorker(e, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	w.queue.Open(queue)
	s := &state{key: workKey, work: testWork(manifestText), member: e}
	if _, err := loopOf(t, w, s); err != nil && s.blocked == nil {
		t.Fatal(err)
	}
	if queue.Len() != 1 {
		t.Fatalf("%d Works are to be looked at, want that of the namespace", queue.Len())
	}
	want := client.ObjectKey{Namespace: workKey.Namespace, Name: workv1alpha2.WorkName("Namespace", "shop", "")}
	if got, _ := queue.Get(); got.NamespacedName != want {
		t.Errorf("%s is to be looked at, want %s", got, want)
	}
}
