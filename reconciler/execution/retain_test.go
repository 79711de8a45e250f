package execution

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
)

// scaledBy returns the object of manifestText with 9 replicas that somebody set
// through the subresource for that.
func scaledBy(t *testing.T, manager string) *unstructured.Unstructured {
	t.Helper()
	return parse(t, strings.Replace(strings.Replace(manifestText, `"replicas":5`, `"replicas":9`, 1), `"web"}}`,
		`"web"},"managedFields":[{"manager":"flotilla","operation":"Apply","apiVersion":"apps/v1","fieldsV1":{"f:spec":{"f:paused":{}}}},`+
			`{"manager":"`+manager+`","operation":"Update","subresource":"scale","fieldsV1":{"f:spec":{"f:replicas":{}}}}]}`, 1))
}

// TestReplicasAfterAnAutoscaler: the number was left to the member when the
// manifest had 3, and the manifest now has 5.
func TestReplicasAfterAnAutoscaler(t *testing.T) {
	const autoscaler = "kube-controller-manager"
	type outcome struct {
		Sent     any // replicas; nil where they are left to the member
		Recorded *int32
		Failed   bool
	}
	three := ptr.To[int32](3)
	cases := map[string]struct {
		manager    string
		autoscaled bool
		silent     error // why autoscalers cannot be read
		refuse     error // the member's answer to the first try
		want       outcome
	}{
		"it is gone: the number counts":                {manager: autoscaler, want: outcome{Sent: int64(5)}},
		"it is there":                                  {manager: autoscaler, autoscaled: true, want: outcome{Recorded: three}},
		"it is gone, and the member fails at first":    {manager: autoscaler, refuse: apierrors.NewServiceUnavailable("starting"), want: outcome{Sent: int64(5)}},
		"nobody can say for the moment":                {manager: autoscaler, silent: context.DeadlineExceeded, want: outcome{Recorded: three, Failed: true}},
		"nobody may say":                               {manager: autoscaler, silent: apierrors.NewForbidden(schema.GroupResource{}, "", nil), want: outcome{Recorded: three}},
		"a person scaled meanwhile, and it is there":   {manager: "kubectl", autoscaled: true, want: outcome{Recorded: three}},
		"a person scaled after it was gone":            {manager: "kubectl", want: outcome{Sent: int64(5)}},
		"a person scaled, and nobody may say about it": {manager: "kubectl", silent: apierrors.NewForbidden(schema.GroupResource{}, "", nil), want: outcome{Sent: int64(5)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := &edge{presence: members.Present, live: scaledBy(t, tc.manager), autoscaled: tc.autoscaled, silent: tc.silent, refuse: tc.refuse}
			e.observed = ours(func(o *members.Observed) { o.Scaled = tc.manager == autoscaler })
			w := testWorker(e, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			work := testWork(manifestText)
			work.Status.Applied = []workv1alpha1.AppliedHash{{Desired: "older", Observed: "owned", Replicas: ptr.To[int64](3)}}
			var got outcome
			for range 2 {
				s := &state{key: workKey, work: work, member: e}
				if _, err := loopOf(t, w, s); err != nil {
					t.Fatal(err)
				}
				got.Failed, got.Recorded = s.objects[0].failed != nil, nil
				if n := s.objects[0].record.Replicas; n != nil {
					got.Recorded = ptr.To(int32(*n)) //nolint:gosec // a small number
				}
				work = work.DeepCopy()
				work.Status, e.refuse = *s.status, nil
			}
			if e.sent != nil {
				got.Sent, _, _ = unstructured.NestedFieldNoCopy(e.sent.Object, "spec", "replicas")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatWasPutBackIsReportedUntilItIsWritten: if a status is delayed for a moment, or
// refused by the hub, the correction is still reported later, when nothing differs any more.
func TestWhatWasPutBackIsReportedUntilItIsWritten(t *testing.T) {
	e := &edge{presence: members.Present, observed: ours(func(o *members.Observed) { o.Owned = "drifted" }), live: scaledBy(t, "kubectl")}
	w := testWorker(e, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	work := testWork(manifestText)
	work.Status.Applied = []workv1alpha1.AppliedHash{{Desired: members.Hash([]byte(manifestText)), Observed: "owned"}}
	say := func() string {
		s := &state{key: workKey, work: work, member: e}
		if _, err := loopOf(t, w, s); err != nil {
			t.Fatal(err)
		}
		if c := meta.FindStatusCondition(s.status.Conditions, workv1alpha1.WorkDrifted); c != nil {
			return c.Message
		}
		return ""
	}
	first := say()
	e.observed = ours(asIs)
	second := say()
	w.reporter.records.Forget(workKey)
	third := say()
	const put = "Deployment shop/web: spec.replicas changed by kubectl; put back at 1970-01-01T00:00:00Z"
	if diff := cmp.Diff([]string{put, put, ""}, []string{first, second, third}); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"get web", "apply web"}, e.asked); diff != "" {
		t.Errorf("asked of the member (-want +got):\n%s", diff)
	}
}

// TestWhatWasNotPutBackIsNotReported: the member refused it.
func TestWhatWasNotPutBackIsNotReported(t *testing.T) {
	e := &edge{presence: members.Present, observed: ours(func(o *members.Observed) { o.Owned = "drifted" }), live: scaledBy(t, "kubectl"), refuse: errors.New("denied")}
	w := testWorker(e, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	s := &state{key: workKey, work: testWork(manifestText), member: e}
	s.work.Status.Applied = []workv1alpha1.AppliedHash{{Desired: members.Hash([]byte(manifestText)), Observed: "owned"}}
	if _, err := loopOf(t, w, s); err != nil || s.objects[0].failed == nil {
		t.Fatal(err, s.failed())
	}
	if c := meta.FindStatusCondition(s.status.Conditions, workv1alpha1.WorkDrifted); c != nil {
		t.Errorf("reported: %v", c)
	}
}

// moving is a member whose object changes from one question to the next.
type moving struct {
	*edge
	next []*unstructured.Unstructured
}

func (m *moving) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	m.live, m.next = m.next[0], m.next[1:]
	return m.edge.Get(ctx, gvk, key)
}

// TestWhatIsToBeReportedIsNeverPutBack: drift that is only reported is not corrected even if the object changes, or is
// deleted, during the pass.
func TestWhatIsToBeReportedIsNeverPutBack(t *testing.T) {
	same, other := parse(t, manifestText), scaledBy(t, "kubectl")
	cases := map[string]struct {
		edge  edge
		next  []*unstructured.Unstructured // what each read finds
		looks int
		asked []string
		waits bool
	}{
		"it changes once it was compared": {
			edge{presence: members.Present, observed: ours(func(o *members.Observed) { o.Owned = "drifted" })},
			[]*unstructured.Unstructured{same, other}, 1, []string{"get web", "get web"}, true,
		},
		"it goes once it was compared": {
			edge{presence: members.Present, observed: ours(func(o *members.Observed) { o.Owned = "drifted" })},
			[]*unstructured.Unstructured{same, nil}, 1, []string{"get web", "get web"}, true,
		},
		"it goes a while after the watch had yet to show it": {
			edge{presence: members.Absent},
			[]*unstructured.Unstructured{same, same, nil}, 2, []string{"get web", "get web", "apply web", "get web"}, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := &moving{edge: &tc.edge, next: tc.next}
			w := testWorker(&tc.edge, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			work := testWork(manifestText)
			work.Annotations = map[string]string{workv1alpha2.DriftAnnotation: workv1alpha2.DriftReport}
			work.Status.Applied = []workv1alpha1.AppliedHash{{Desired: members.Hash([]byte(manifestText)), Observed: "owned"}}
			var s *state
			for range tc.looks {
				s = &state{key: workKey, work: work, member: m}
				if _, err := loopOf(t, w, s); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.asked, tc.edge.asked); diff != "" {
				t.Errorf("asked of the member (-want +got):\n%s", diff)
			}
			if (s.blocked != nil) != tc.waits {
				t.Errorf("waits: %v", s.blocked)
			}
		})
	}
}
