package execution

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/access"
	"github.com/flotilla-io/flotilla/reconciler/execution/impersonation"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// TestAsWhomAWorkIsApplied: if the Cluster has the annotation for it, never as anybody but the authors
// of the Work.
func TestAsWhomAWorkIsApplied(t *testing.T) {
	const (
		alice = "flotilla:user:alice"
		robot = "flotilla:serviceaccount:shop:default"
		both  = `[{"user":"system:serviceaccount:shop:default"},{"user":"alice"}]`
	)
	foreign := strings.NewReplacer(`"labels":{"karmada.io/managed":"true"},`, "", `{"work.karmada.io/namespace":"karmada-es-eu-1","work.karmada.io/name":"web"}`, "{}").Replace(manifestText)
	kubectl := strings.Replace(foreign, `"name":"web",`, `"name":"web","uid":"u","managedFields":[{"manager":"kubectl-client-side-apply","operation":"Update","apiVersion":"apps/v1","fieldsV1":{"f:spec":{"f:replicas":{}}}}],`, 1)
	overwrite := strings.Replace(manifestText, `"annotations":{`, `"annotations":{"work.karmada.io/conflict-resolution":"overwrite",`, 1)
	holding := strings.Replace(manifestText, `"annotations":{`, `"annotations":{"`+gitopsv1alpha1.HoldsSecretsAnnotation+`":"fields",`, 1)
	selector := field.Invalid(field.NewPath("spec", "selector"), map[string]any{"matchLabels": map[string]any{"a": "canary"}}, "field is immutable")
	refusal := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", field.ErrorList{selector})
	for name, tc := range map[string]struct {
		edge    edge
		as, by  string // the annotations of the Cluster and of the Work
		text    string // empty: manifestText
		changed string // the record of overrides on the Work
		asked   []string
		reason  string // of a failure
		says    string
		hides   string
	}{
		"a cluster that says nothing":                  {by: both, asked: []string{"make web"}},
		"a cluster that says the control plane":        {as: "ControlPlane", by: both, asked: []string{"make web"}},
		"what nobody but administrators wrote":         {as: "Author", asked: []string{"make web"}},
		"what an account applied":                      {as: "Author", by: `[{"user":"system:serviceaccount:shop:default"}]`, asked: []string{"as " + robot, "make web"}},
		"what two have a word in":                      {as: "Author", by: both, asked: []string{"try web as " + alice, "as " + robot, "make web"}},
		"what one wrote twice, once with a group more": {as: "Author", by: `[{"user":"alice"},{"user":"alice","groups":["dev"]}]`, asked: []string{"as " + alice, "make web"}},
		"what one of the two may not":                  {as: "Author", by: both, edge: edge{forbidden: alice}, asked: []string{"try web as " + alice}, reason: "AccountForbidden", says: "for alice who applied it"},
		"what the member does not allow":               {as: "Author", by: `[{"user":"alice"}]`, edge: edge{forbidden: alice}, asked: []string{"as " + alice}, reason: "AccountForbidden", says: "Deployment shop/web is applied as the user flotilla:user:alice in cluster eu-1, for alice"},
		"what an override of his changed": {as: "Author", by: `[{"user":"alice"}]`, changed: `[{"policyName":"tag"},{"policyName":"tag"}]`, edge: edge{forbidden: alice}, asked: []string{"as " + alice}, reason: "AccountForbidden",
			says: "since alice applied its template or wrote in what changes it, which is OverridePolicy tag; the cluster does not allow that"},
		"one for whom nobody stands there":        {as: "Author", by: `[{"user":"system:node:a"}]`, reason: "UnknownAccount", says: "nobody in cluster eu-1 stands for system:node:a"},
		"one of two for whom nobody stands there": {as: "Author", by: `[{"user":"alice"},{"user":"system:karmada:agent:x"}]`, reason: "UnknownAccount", says: "system:karmada:agent:x"},
		"what cannot be read":                     {as: "Author", by: `alice`, reason: "UnknownAccount", says: "cannot be read"},
		"nobody by name":                          {as: "Author", by: `[{"user":""}]`, reason: "UnknownAccount", says: "it names nobody"},
		"another fault of the member":             {as: "Author", by: `[{"user":"alice"}]`, edge: edge{refuse: errors.New("no")}, asked: []string{"as " + alice, "make web"}, reason: "AppliedFailed", says: "no"},
		"what it refuses where a secret is in it": {text: holding, edge: edge{refuse: refusal}, asked: []string{"make web"}, reason: "AppliedFailed",
			says: "Deployment is refused: spec.selector: Invalid value: field is immutable", hides: "canary"},
		"what it refuses of all else":             {edge: edge{refuse: refusal}, asked: []string{"make web"}, reason: "AppliedFailed", says: "canary"},
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
			w := testWorker(&tc.edge, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			for range triesForOthers {
				w.queue.Retries.When(workKey) // so often that the right does not count as on its way any more
			}
			s := &state{key: workKey, work: testWork(text), member: &tc.edge, cluster: &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}}}
			s.cluster.Annotations = map[string]string{"cluster.flotilla.io/apply-as": tc.as}
			s.work.Annotations = map[string]string{"propagation.flotilla.io/applied-by": tc.by}
			if tc.changed != "" {
				s.work.Annotations["policy.karmada.io/applied-overrides"] = tc.changed
			}
			if tc.edge.presence == members.Present {
				s.work.Status.Applied = []workv1alpha1.AppliedHash{{Desired: members.Hash([]byte(text)), Observed: "owned"}}
			}
			if _, err := w.reader.connect(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if _, err := w.applier.apply(t.Context(), s); err != nil || s.blocked != nil {
				t.Fatal(err, s.blocked)
			}
			if diff := cmp.Diff(tc.asked, tc.edge.asked); diff != "" {
				t.Errorf("asked of the member (-want +got):\n%s", diff)
			}
			if _, err := w.describer.computeStatus(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			c := meta.FindStatusCondition(s.status.Conditions, workv1alpha1.WorkApplied)
			switch {
			case c == nil:
				t.Fatal("there is no condition Applied")
			case tc.reason == "" && c.Status != metav1.ConditionTrue, tc.reason != "" && (c.Status != metav1.ConditionFalse || c.Reason != tc.reason || !strings.Contains(c.Message, tc.says)):
				t.Errorf("Applied is %s, %s: %s; want %q: %q", c.Status, c.Reason, c.Message, tc.reason, tc.says)
			case tc.hides != "" && strings.Contains(c.Message, tc.hides):
				t.Errorf("%q is told: %s", tc.hides, c.Message)
			}
		})
	}
}

// TestARightThatIsOnItsWay: a Work waits for a missing right, and is enqueued when that is granted; one
// that waits for another right goes on waiting, with the same back-off.
func TestARightThatIsOnItsWay(t *testing.T) {
	const (
		apps      = `"rules":[{"verbs":["patch"],"apiGroups":["apps"],"resources":["deployments"]}]`
		secrets   = `"rules":[{"verbs":["patch"],"apiGroups":[""],"resources":["secrets"]}]`
		toEdit    = `"roleRef":{"kind":"ClusterRole","name":"flotilla:edit"},"subjects":[`
		user      = `{"kind":"User","name":"flotilla:user:alice"}`
		other     = `{"kind":"User","name":"flotilla:user:bob"}`
		group     = `{"kind":"Group","name":"flotilla:group:dev"}`
		falseName = `{"kind":"Group","name":"flotilla:user:alice"},{"kind":"User","name":"flotilla:group:dev"},{"kind":"ServiceAccount","name":"flotilla:user:alice"}`
	)
	in := func(kind, namespace, content string) string {
		return `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"` + kind + `","metadata":{"namespace":"` + namespace + `","name":"flotilla:edit"},` + content + `}`
	}
	for name, tc := range map[string]struct {
		applied string
		rights  string // what the control plane has bound besides, where it applies a copy
		waits   bool
	}{
		"bound to him":                            {applied: in("RoleBinding", "shop", toEdit+other+","+user+"]")},
		"bound to a group of his":                 {applied: in("RoleBinding", "shop", toEdit+group+"]")},
		"bound to him everywhere":                 {applied: in("ClusterRoleBinding", "", toEdit+user+"]")},
		"bound to him in another namespace":       {applied: in("RoleBinding", "crown", toEdit+user+"]"), waits: true},
		"bound to another":                        {applied: in("RoleBinding", "shop", toEdit+other+"]"), waits: true},
		"bound to others of such names":           {applied: in("RoleBinding", "shop", toEdit+falseName+"]"), waits: true},
		"a role of an administrator":              {applied: in("Role", "shop", apps)},
		"one about other things":                  {applied: in("ClusterRole", "", secrets), waits: true},
		"one of another namespace":                {applied: in("Role", "crown", apps), waits: true},
		"a copy that he is bound to":              {applied: in("ClusterRole", "", apps), rights: in("RoleBinding", "shop", toEdit+user+"]")},
		"a copy that another is bound to":         {applied: in("ClusterRole", "", apps), rights: in("RoleBinding", "shop", toEdit+other+"]"), waits: true},
		"a copy that he is bound to elsewhere":    {applied: in("ClusterRole", "", apps), rights: in("RoleBinding", "crown", toEdit+user+"]"), waits: true},
		"a copy that is not what he is bound to":  {applied: in("ClusterRole", "", apps), rights: in("RoleBinding", "shop", `"roleRef":{"kind":"ClusterRole","name":"flotilla:view"},"subjects":[`+user+"]"), waits: true},
		"something else that is called as a role": {applied: strings.Replace(in("Role", "shop", apps), "rbac.authorization.k8s.io", "example.com", 1), waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			e := &edge{presence: members.Absent, forbidden: "flotilla:user:alice"}
			p := testParts(e, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			given := testWork(tc.rights)
			given.Name, given.Labels = "given", map[string]string{access.RightsLabel: "shop"}
			p.hub = fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(given).Build()
			w := p.worker("eu-1", elsewhere{})
			s := &state{key: workKey, work: testWork(manifestText), member: e, cluster: &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}}}
			s.cluster.Annotations = map[string]string{"cluster.flotilla.io/apply-as": "Author"}
			s.work.Annotations = map[string]string{"propagation.flotilla.io/applied-by": `[{"user":"alice","groups":["dev"]}]`}
			if _, err := w.reader.connect(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if _, err := w.applier.apply(t.Context(), s); err != nil || s.blocked == nil || s.blocked.Cause.Event != waitqueue.OnRights {
				t.Fatal(err, s.failed())
			}
			w.queue.Wait(workKey, s.blocked.Cause, 0)
			w.queue.Retries.When(workKey)
			binding := testWork(tc.applied)
			binding.Name, binding.UID = "rights", "rights"
			if tc.rights != "" {
				binding.Labels = map[string]string{access.RightsLabel: ""}
			}
			s = &state{key: client.ObjectKeyFromObject(binding), work: binding, member: &edge{presence: members.Absent}}
			if _, err := w.reader.connect(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if _, err := w.applier.apply(t.Context(), s); err != nil || s.objects[0].failed != nil {
				t.Fatal(err, s.failed())
			}
			tried := w.queue.Retries.NumRequeues(workKey)
			waits := waits(w, func(waitqueue.Cause) bool { return true })
			if waits != tc.waits || tried > 0 != tc.waits {
				t.Errorf("it waits: %v, after %d tries; want %v", waits, tried, tc.waits)
			}
		})
	}
}

// TestNamesOfTheControlPlane: no author can create a Role or binding in a member with a name that is
// reserved for the control plane's users, or for such a user.
func TestNamesOfTheControlPlane(t *testing.T) {
	const binding = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"namespace":"shop","name":"x"},"subjects":[{"kind":"Group","name":"flotilla:masters"}]}`
	for name, tc := range map[string]struct {
		by, as, text string
		says         string
	}{
		"an author's":                                {`[{"user":"alice"}]`, "Author", binding, `RoleBinding shop/x is not applied: in subjects[0].name, "flotilla:masters" begins with flotilla:`},
		"where the control plane applies":            {`[{"user":"alice"}]`, "ControlPlane", binding, "flotilla:masters"},
		"of whom cannot be read":                     {"alice", "Author", binding, "flotilla:masters"},
		"an administrator's, or the control plane's": {"", "Author", binding, ""},
		"one that cannot be read":                    {`[{"user":"alice"}]`, "ControlPlane", strings.Replace(binding, `[{"kind":"Group","name":"flotilla:masters"}]`, `"flotilla:masters"`, 1), "cannot be read"},
		"people of the member's":                     {`[{"user":"alice"}]`, "Author", strings.Replace(binding, "flotilla:masters", "dev", 1), ""},
		"what gives no rights":                       {`[{"user":"alice"}]`, "Author", strings.Replace(binding, "rbac.authorization.k8s.io", "example.com", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := &edge{presence: members.Absent}
			w := testWorker(e, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			s := &state{key: workKey, work: testWork(tc.text), member: e, cluster: &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}}}
			s.cluster.Annotations = map[string]string{"cluster.flotilla.io/apply-as": tc.as}
			s.work.Annotations = map[string]string{"propagation.flotilla.io/applied-by": tc.by}
			if _, err := w.reader.connect(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if _, err := w.applier.apply(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			switch err := s.objects[0].failed; {
			case tc.says == "" && (err != nil || e.sent == nil):
				t.Errorf("it is not applied: %v", err)
			case tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says) || len(e.asked) > 0):
				t.Errorf("error %v after %v, want %q", err, e.asked, tc.says)
			}
		})
	}
}

// TestAClusterThatIsNotKnown: without the Cluster it is not known as whom to apply, so a Work with authors
// is not sent with the hub's own rights.
func TestAClusterThatIsNotKnown(t *testing.T) {
	e := &edge{presence: members.Absent}
	work := testWork(manifestText)
	if _, err := impersonation.Of(nil, work, e); err != nil {
		t.Errorf("the control plane's own: %v", err)
	}
	work.Annotations = map[string]string{"propagation.flotilla.io/applied-by": `[{"user":"alice"}]`}
	if as, err := impersonation.Of(nil, work, e); err == nil || as != nil {
		t.Errorf("alice's is sent by %v: %v", as, err)
	}
}
