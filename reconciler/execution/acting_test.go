package execution

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/execution/acting"
)

// TestAsWhomAWorkIsApplied: where a cluster says so, never as anybody but those whose
// word is in the Work.
func TestAsWhomAWorkIsApplied(t *testing.T) {
	const (
		alice = "flotilla:user:alice"
		robot = "flotilla:serviceaccount:shop:default"
		both  = `[{"user":"system:serviceaccount:shop:default"},{"user":"alice"}]`
	)
	foreign := strings.NewReplacer(`"labels":{"karmada.io/managed":"true"},`, "", `{"work.karmada.io/namespace":"karmada-es-eu-1","work.karmada.io/name":"web"}`, "{}").Replace(manifestText)
	kubectl := strings.Replace(foreign, `"name":"web",`, `"name":"web","uid":"u","managedFields":[{"manager":"kubectl-client-side-apply","operation":"Update","apiVersion":"apps/v1","fieldsV1":{"f:spec":{"f:replicas":{}}}}],`, 1)
	overwrite := strings.Replace(manifestText, `"annotations":{`, `"annotations":{"work.karmada.io/conflict-resolution":"overwrite",`, 1)
	for name, tc := range map[string]struct {
		edge   edge
		as, by string // the annotations of the Cluster and of the Work
		text   string // empty: manifestText
		asked  []string
		reason string // of a failure
		says   string
	}{
		"a cluster that says nothing":             {by: both, asked: []string{"make web"}},
		"a cluster that says the control plane":   {as: "ControlPlane", by: both, asked: []string{"make web"}},
		"what nobody but administrators wrote":    {as: "Author", asked: []string{"make web"}},
		"what an account applied":                 {as: "Author", by: `[{"user":"system:serviceaccount:shop:default"}]`, asked: []string{"as " + robot, "make web"}},
		"what two have a word in":                 {as: "Author", by: both, asked: []string{"try web as " + alice, "as " + robot, "make web"}},
		"what one of the two may not":             {as: "Author", by: both, edge: edge{forbidden: alice}, asked: []string{"try web as " + alice}, reason: "AccountForbidden", says: "for alice who applied it"},
		"what the member does not allow":          {as: "Author", by: `[{"user":"alice"}]`, edge: edge{forbidden: alice}, asked: []string{"as " + alice}, reason: "AccountForbidden", says: "Deployment shop/web is applied as the user flotilla:user:alice in cluster eu-1, for alice"},
		"one for whom nobody stands there":        {as: "Author", by: `[{"user":"system:node:a"}]`, reason: "UnknownAccount", says: "nobody in cluster eu-1 stands for system:node:a"},
		"one of two for whom nobody stands there": {as: "Author", by: `[{"user":"alice"},{"user":"system:karmada:agent:x"}]`, reason: "UnknownAccount", says: "system:karmada:agent:x"},
		"what cannot be read":                     {as: "Author", by: `alice`, reason: "UnknownAccount", says: "cannot be read"},
		"nobody by name":                          {as: "Author", by: `[{"user":""}]`, reason: "UnknownAccount", says: "it names nobody"},
		"another fault of the member":             {as: "Author", by: `[{"user":"alice"}]`, edge: edge{refuse: errors.New("no")}, asked: []string{"as " + alice, "make web"}, reason: "AppliedFailed", says: "no"},
		"what is taken over from others, too":     {as: "Author", by: `[{"user":"alice"}]`, text: overwrite, edge: edge{live: parse(t, kubectl)}, asked: []string{"as " + alice, "make web", "get web", "as " + alice, "unmark web", "as " + alice, "apply web"}},
		"what is taken over as the control plane": {as: "ControlPlane", by: both, text: overwrite, edge: edge{live: parse(t, kubectl)}, asked: []string{"make web", "get web", "unmark web", "apply web"}},
		"what is changed back, as well":           {as: "Author", by: `[{"user":"alice"}]`, edge: edge{presence: members.Present, observed: ours(func(o *members.Observed) { o.Owned = "other" }), live: parse(t, manifestText)}, asked: []string{"get web", "as " + alice, "apply web"}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.edge.presence == members.Unknown {
				tc.edge.presence = members.Absent
			}
			text := tc.text
			if text == "" {
				text = manifestText
			}
			l := testLane(&tc.edge, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			for range triesForRights {
				l.line.retries.When(workKey) // the right may be on its way no more
			}
			s := &state{key: workKey, work: testWork(text), member: &tc.edge, cluster: &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}}}
			s.cluster.Annotations = map[string]string{"cluster.flotilla.io/apply-as": tc.as}
			s.work.Annotations = map[string]string{"propagation.flotilla.io/applied-by": tc.by}
			if tc.edge.presence == members.Present {
				s.work.Status.Applied = []workv1alpha1.AppliedHash{{Desired: members.Hash([]byte(text)), Observed: "owned"}}
			}
			if _, err := l.connect(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if _, err := l.carry(t.Context(), s); err != nil || s.blocked != nil {
				t.Fatal(err, s.blocked)
			}
			if diff := cmp.Diff(tc.asked, tc.edge.asked); diff != "" {
				t.Errorf("asked of the member (-want +got):\n%s", diff)
			}
			if _, err := l.describe(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			c := meta.FindStatusCondition(s.status.Conditions, workv1alpha1.WorkApplied)
			switch {
			case c == nil:
				t.Fatal("there is no condition Applied")
			case tc.reason == "" && c.Status != metav1.ConditionTrue, tc.reason != "" && (c.Status != metav1.ConditionFalse || c.Reason != tc.reason || !strings.Contains(c.Message, tc.says)):
				t.Errorf("Applied is %s, %s: %s; want %q: %q", c.Status, c.Reason, c.Message, tc.reason, tc.says)
			}
		})
	}
}

// TestARightThatIsOnItsWay: a Work waits for it, and is looked at when it is there.
func TestARightThatIsOnItsWay(t *testing.T) {
	e := &edge{presence: members.Absent, forbidden: "flotilla:user:alice"}
	l := testLane(e, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	s := &state{key: workKey, work: testWork(manifestText), member: e, cluster: &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}}}
	s.cluster.Annotations = map[string]string{"cluster.flotilla.io/apply-as": "Author"}
	s.work.Annotations = map[string]string{"propagation.flotilla.io/applied-by": `[{"user":"alice"}]`}
	if _, err := l.connect(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if _, err := l.carry(t.Context(), s); err != nil || s.blocked == nil {
		t.Fatal(err, s.failed)
	}
	if diff := cmp.Diff(cause{event: onRights}, s.blocked.cause, cmp.AllowUnexported(cause{})); diff != "" {
		t.Errorf("waits for (-want +got):\n%s", diff)
	}
	l.line.wait(workKey, s.blocked.cause, 0)
	other := &edge{presence: members.Absent}
	binding := testWork(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"namespace":"shop","name":"flotilla:team"}}`)
	binding.Name, binding.UID = "rights", "rights"
	s = &state{key: client.ObjectKeyFromObject(binding), work: binding, member: other}
	if _, err := l.connect(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if _, err := l.carry(t.Context(), s); err != nil || s.failed[0] != nil {
		t.Fatal(err, s.failed)
	}
	if waiting := l.line.waitingFor(func(cause) bool { return true }); len(waiting) > 0 {
		t.Errorf("%v still wait", waiting)
	}
}

// TestAClusterThatIsNotKnown: nobody says as whom it applies, so what somebody wrote is
// not sent with all rights.
func TestAClusterThatIsNotKnown(t *testing.T) {
	e := &edge{presence: members.Absent}
	work := testWork(manifestText)
	if _, err := acting.Of(nil, work, e); err != nil {
		t.Errorf("the control plane's own: %v", err)
	}
	work.Annotations = map[string]string{"propagation.flotilla.io/applied-by": `[{"user":"alice"}]`}
	if as, err := acting.Of(nil, work, e); err == nil || as != nil {
		t.Errorf("alice's is sent by %v: %v", as, err)
	}
}
