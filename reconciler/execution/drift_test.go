package execution

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/reconciler/execution/retention"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// script is a rule for all objects.
type script func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)

func (script) Retains(*unstructured.Unstructured) bool { return true }
func (s script) Retain(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return s(desired, observed)
}

// TestRulesThatDoNotAnswer: nothing is sent without the answers of rules.
func TestRulesThatDoNotAnswer(t *testing.T) {
	deployments := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	type outcome struct {
		Asked       []string
		Blocked     bool
		Interpreted string
	}
	cases := map[string]struct {
		err  error
		want outcome
	}{
		"an answer that is on its way": {&kinds.Pending{Of: "a webhook", After: time.Second}, outcome{Asked: []string{"get web"}, Blocked: true}},
		"a rule that fails":            {errors.New("no such field"), outcome{Asked: []string{"get web"}, Interpreted: "keep what the member set in Deployment shop/web: no such field"}},
		"one that answers":             {nil, outcome{Asked: []string{"get web", "apply web"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := &edge{presence: members.Present, observed: ours(asIs), live: parse(t, manifestText)}
			p := testParts(e, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			p.retention = retention.Retention{Retainer: script(func(desired, _ *unstructured.Unstructured) (*unstructured.Unstructured, error) {
				return desired, tc.err
			})}
			w := p.worker("eu-1", elsewhere{})
			s := &state{key: workKey, work: testWork(manifestText), member: e}
			next, err := loopOf(t, w, s)
			got := outcome{Asked: e.asked, Blocked: s.blocked != nil}
			if s.blocked != nil && s.blocked.After != time.Second {
				t.Errorf("looks again after %s", s.blocked.After)
			}
			if s.status != nil {
				if c := meta.FindStatusCondition(s.status.Conditions, workv1alpha1.WorkInterpreted); c != nil {
					got.Interpreted = c.Message
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("outcome, %v (-want +got):\n%s", err, diff)
			}
			if tc.want.Interpreted != "" {
				if _, err := w.next(t.Context(), s, next, s.problem(), w.queue.Begin(workKey)); err != nil {
					t.Fatal(err)
				}
				if !waits(w, func(c waitqueue.Cause) bool { return c == waitqueue.Cause{Event: waitqueue.OnSync, Kind: deployments} }) {
					t.Error("does not wait for the watch")
				}
			}
		})
	}
}

// TestDriftIsReported: who changed what is reported once, and left as it is if that
// is wanted.
func TestDriftIsReported(t *testing.T) {
	recorded := []workv1alpha1.AppliedHash{{Desired: members.Hash([]byte(manifestText)), Observed: "owned"}}
	changed := strings.Replace(strings.Replace(manifestText, `"replicas":5`, `"replicas":9`, 1), `"web"}}`,
		`"web"},"managedFields":[{"manager":"flotilla","operation":"Apply","apiVersion":"apps/v1","fieldsV1":{"f:spec":{"f:paused":{}}}},`+
			`{"manager":"kubectl-edit","operation":"Update","time":"2026-11-21T04:00:00Z","fieldsV1":{"f:spec":{"f:replicas":{}}}}]}`, 1)
	drifted := ours(func(o *members.Observed) { o.Owned = "drifted" })
	type outcome struct {
		Asked, Reported []string
		Status, Message string
	}
	const who = "Deployment shop/web: spec.replicas changed by kubectl-edit at 2026-11-21T04:00:00Z"
	cases := map[string]struct {
		edge   edge
		report bool
		want   outcome
	}{
		"it is put back": {
			edge{presence: members.Present, observed: drifted, live: parse(t, changed)}, false,
			outcome{[]string{"get web", "apply web"}, []string{"*v1alpha1.Work DriftReverted"}, "False", who + "; put back at 1970-01-01T00:00:00Z"},
		},
		"it is left alone": {
			edge{presence: members.Present, observed: drifted, live: parse(t, changed)}, true,
			outcome{[]string{"get web"}, []string{"*v1alpha1.Work DriftReported"}, "True", who},
		},
		"what is gone is not made again": {
			edge{presence: members.Absent}, true,
			outcome{[]string{"get web"}, []string{"*v1alpha1.Work DriftReported"}, "True", "Deployment shop/web was removed"},
		},
		"what only changed hands is taken back, that is no drift": {
			edge{presence: members.Present, observed: drifted, live: parse(t, strings.Replace(changed, `"replicas":9`, `"replicas":5`, 1))}, true,
			outcome{Asked: []string{"get web", "get web", "apply web"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := testParts(&tc.edge, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			reported := &events{}
			p.events = reported
			w := p.worker("eu-1", elsewhere{})
			work := testWork(manifestText)
			work.Status.Applied = recorded
			if tc.report {
				work.Annotations = map[string]string{workv1alpha2.DriftAnnotation: workv1alpha2.DriftReport}
			}
			var got outcome
			for range 2 { // the second time there is no event
				s := &state{key: workKey, work: work, member: &tc.edge}
				if _, err := loopOf(t, w, s); err != nil {
					t.Fatal(err)
				}
				if got.Asked == nil {
					got.Asked = tc.edge.asked
				}
				if c := meta.FindStatusCondition(s.status.Conditions, workv1alpha1.WorkDrifted); c != nil {
					got.Status, got.Message = string(c.Status), c.Message
				}
			}
			got.Reported = reported.reported
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

// loopOf runs the phases that apply and describe a Work.
func loopOf(t *testing.T, w *worker, s *state) (loop.Next, error) {
	t.Helper()
	if _, err := w.reader.connect(t.Context(), s); err != nil {
		return loop.Next{}, err
	}
	next, err := w.applier.apply(t.Context(), s)
	if err != nil || s.blocked != nil {
		return next, err
	}
	after, err := w.describer.computeStatus(t.Context(), s)
	return soonest(next, after), err
}
