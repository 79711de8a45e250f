package execution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/tenure"
	"github.com/flotilla-io/flotilla/policies/author"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/reconciler/debounce"
	"github.com/flotilla-io/flotilla/reconciler/execution/backoff"
	"github.com/flotilla-io/flotilla/reconciler/execution/drift"
	"github.com/flotilla-io/flotilla/reconciler/execution/impersonation"
	"github.com/flotilla-io/flotilla/reconciler/execution/retention"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// edge is a member as a phase sees it, and records its calls.
type edge struct {
	observed *members.Observed
	presence members.Presence
	live     *unstructured.Unstructured
	refuse   error
	standing hubclaim.Standing
	asked    []string
	sent     *unstructured.Unstructured

	autoscaled bool   // whether an autoscaler scales the object
	silent     error  // why that cannot be read
	forbidden  string // the user who may do nothing
	conflicts  bool   // whether any resource version is a conflict
	keeps      bool   // whether what is deleted is there for a while
	pods       []corev1.Pod
}

func (e *edge) ask(format string, args ...any) {
	e.asked = append(e.asked, fmt.Sprintf(format, args...))
}

func (e *edge) Read(schema.GroupVersionKind, types.NamespacedName) (*members.Observed, members.Presence) {
	return e.observed, e.presence
}

func (e *edge) Get(_ context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	e.ask("get %s", key.Name)
	if e.live == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: strings.ToLower(gvk.Kind)}, key.Name)
	}
	return e.live, nil
}

func (e *edge) Served(_ context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	return gvk, nil
}

func (e *edge) Autoscaled(_ context.Context, _ schema.GroupVersionKind, key types.NamespacedName) (bool, error) {
	e.ask("autoscaled %s", key.Name)
	return e.autoscaled, e.silent
}

func (e *edge) Warnings(context.Context, string, types.UID) ([]corev1.Event, error) {
	return nil, nil
}

func (e *edge) Pods(_ context.Context, _ string, options metav1.ListOptions) ([]corev1.Pod, error) {
	e.ask("pods %s", options.LabelSelector)
	return e.pods, nil
}

func (e *edge) Standing() hubclaim.Standing { return e.standing }

func (e *edge) Apply(_ context.Context, desired *unstructured.Unstructured) (*members.Observed, error) {
	verb := "apply"
	if desired.GetResourceVersion() == members.OnlyNew {
		verb = "make"
	}
	e.ask("%s %s", verb, desired.GetName())
	if verb == "make" && (e.live != nil || e.conflicts) {
		return nil, apierrors.NewConflict(schema.GroupResource{}, desired.GetName(), errors.New("it is there"))
	}
	e.sent = desired
	if e.refuse != nil {
		return nil, e.refuse
	}
	out := members.MetadataOf(desired)
	out.Owned, out.Health = "owned", workv1alpha1.ResourceHealthy
	return out, nil
}

func (e *edge) As(who author.Account) (members.Sender, error) { return inTheNameOf{who, e}, nil }

// inTheNameOf is a member as a user sees it.
type inTheNameOf struct {
	who  author.Account
	edge *edge
}

func (i inTheNameOf) Apply(ctx context.Context, desired *unstructured.Unstructured) (*members.Observed, error) {
	i.edge.ask("as %s", i.who.User)
	if err := i.forbids(desired.GetName()); err != nil {
		return nil, err
	}
	return i.edge.Apply(ctx, desired)
}

func (i inTheNameOf) Try(_ context.Context, desired *unstructured.Unstructured) error {
	i.edge.ask("try %s as %s", desired.GetName(), i.who.User)
	return i.forbids(desired.GetName())
}

func (i inTheNameOf) Patch(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, patch []byte) error {
	i.edge.ask("as %s", i.who.User)
	return i.edge.Patch(ctx, gvk, key, patch)
}

// forbids returns the error of RBAC.
func (i inTheNameOf) forbids(name string) error {
	if i.who.User != i.edge.forbidden {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, name, fmt.Errorf("User %q cannot patch resource", i.who.User))
}

func (e *edge) Patch(_ context.Context, _ schema.GroupVersionKind, key types.NamespacedName, _ []byte) error {
	e.ask("unmark %s", key.Name)
	return e.refuse
}

func (e *edge) Delete(_ context.Context, _ schema.GroupVersionKind, key types.NamespacedName, uid types.UID, owned metav1.DeletionPropagation) (bool, error) {
	text := fmt.Sprintf("delete %s %s", key.Name, uid)
	if owned != metav1.DeletePropagationBackground {
		text += " in " + string(owned)
	}
	e.ask("%s", text)
	return !e.keeps && e.refuse == nil, e.refuse
}

// events keeps what is reported.
type events struct{ reported []string }

func (e *events) Event(obj runtime.Object, _, reason, _ string) {
	e.reported = append(e.reported, fmt.Sprintf("%T %s", obj, reason))
}

var workKey = client.ObjectKey{Namespace: "karmada-es-eu-1", Name: "web"}

// testParts are the dependencies of a worker; a nil member is not connected.
func testParts(e *edge, clock *clocktesting.FakePassiveClock) *parts {
	return &parts{
		connected: func(string) (member, bool) {
			if e == nil {
				return nil, false
			}
			return e, true
		},
		retention: retention.Retention{Retainer: interpreter.Native()},
		opts:      defaults(Options{Clock: clock}),
		events:    &events{},
		drifts:    drift.NewCounter(nil),
		hub:       fake.NewClientBuilder().WithScheme(scheme.New()).Build(),
	}
}

// testWorker returns the worker of eu-1.
func testWorker(e *edge, clock *clocktesting.FakePassiveClock) *worker {
	return testParts(e, clock).worker("eu-1", elsewhere{})
}

const manifestText = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web",` +
	`"labels":{"karmada.io/managed":"true"},"annotations":{"work.karmada.io/namespace":"karmada-es-eu-1","work.karmada.io/name":"web"}},` +
	`"spec":{"replicas":5}}`

func testWork(text string) *workv1alpha1.Work {
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: workKey.Namespace, Name: workKey.Name, UID: "w", Generation: 2,
		Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer},
	}}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(text)}}}
	return work
}

func ours(change func(*members.Observed)) *members.Observed {
	o := &members.Observed{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}, Managed: true, Work: workKey, Owned: "owned"}
	change(o)
	return o
}

func asIs(*members.Observed) {}

func going(o *members.Observed) { o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCarry(t *testing.T) {
	recorded := []workv1alpha1.AppliedHash{{Desired: members.Hash([]byte(manifestText)), Observed: "owned"}}
	stale := []workv1alpha1.AppliedHash{{Desired: "older", Observed: "owned"}}
	made := strings.Replace(manifestText, `"web"}}`, `"web"},"managedFields":[`+
		`{"manager":"kubectl-client-side-apply","operation":"Update","apiVersion":"apps/v1","fieldsV1":{"f:spec":{"f:replicas":{}}}}]}`, 1)
	unmanaged := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web"}}`
	cases := map[string]struct {
		edge    edge
		record  []workv1alpha1.AppliedHash
		text    string // empty: manifestText
		suspend bool
		asked   []string
		failed  string // part of the message
		differs string // the drift that is reported and not corrected
		blocked *waitqueue.Cause
	}{
		"a new manifest is applied so that it takes over nothing": {
			edge: edge{presence: members.Absent}, asked: []string{"make web"},
		},
		"a new manifest over an object that the watch has not shown yet": {
			edge: edge{presence: members.Unknown, live: parse(t, manifestText)}, asked: []string{"make web", "get web", "apply web"},
		},
		"a new manifest that leaves fields to the member": {
			edge:  edge{presence: members.Absent},
			text:  strings.Replace(manifestText, `"labels":{`, `"labels":{"resourcetemplate.karmada.io/retain-replicas":"true",`, 1),
			asked: []string{"get web", "apply web"},
		},
		"a new manifest to a member that never makes anything that way": {
			edge: edge{presence: members.Absent, conflicts: true}, asked: []string{"make web", "get web", "apply web"},
		},
		"a new manifest over an object that is managed already": {
			edge: edge{presence: members.Present, observed: ours(asIs)}, asked: []string{"apply web"},
		},
		"what stands as it was applied is left alone": {
			edge: edge{presence: members.Present, observed: ours(asIs)}, record: recorded,
		},
		"after a restart nothing is sent before it is known what stands": {
			edge: edge{presence: members.Unknown}, record: recorded,
			blocked: &waitqueue.Cause{Event: waitqueue.OnSync, Kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}},
		},
		"a change after a restart is sent at once": {
			edge: edge{presence: members.Unknown}, record: stale, text: strings.Replace(manifestText, `"replicas":5`, `"paused":true`, 1), asked: []string{"apply web"},
		},
		"replicas are not sent after a restart before it is known who sets them": {
			edge: edge{presence: members.Unknown}, record: stale, asked: []string{"get web", "apply web"},
		},
		"a change of what something scales": {
			edge: edge{presence: members.Present, observed: ours(func(o *members.Observed) { o.Scaled = true }), live: parse(t, manifestText)}, record: stale,
			asked: []string{"get web", "apply web"},
		},
		"an object that is managed and was made by others": {
			edge:  edge{presence: members.Present, observed: ours(func(o *members.Observed) { o.Owned = "" }), live: parse(t, made)},
			asked: []string{"get web", "unmark web", "apply web"},
		},
		"one that somebody writes while it is taken over is looked at again": {
			edge:    edge{presence: members.Present, observed: ours(func(o *members.Observed) { o.Owned = "" }), live: parse(t, made), refuse: apierrors.NewConflict(schema.GroupResource{}, "web", nil)},
			asked:   []string{"get web", "unmark web"},
			blocked: &waitqueue.Cause{Event: waitqueue.OnRetry},
		},
		"one that is taken over and was made by others": {
			edge:  edge{presence: members.Absent, live: parse(t, strings.Replace(made, "karmada.io", "example.io", 1))},
			text:  strings.Replace(manifestText, `"work.karmada.io/name"`, `"work.karmada.io/conflict-resolution":"overwrite","work.karmada.io/name"`, 1),
			asked: []string{"make web", "get web", "unmark web", "apply web"},
		},
		"a changed manifest is applied": {
			edge: edge{presence: members.Present, observed: ours(asIs)}, record: stale, asked: []string{"apply web"},
		},
		"drift is put back": {
			edge: edge{presence: members.Present, observed: ours(func(o *members.Observed) { o.Owned = "drifted" }), live: parse(t, manifestText)}, record: recorded,
			asked: []string{"get web", "apply web"},
		},
		"an object that lost its mark but names its Work is taken back": {
			edge:   edge{presence: members.Absent, live: func() *unstructured.Unstructured { o := parse(t, manifestText); o.SetLabels(nil); return o }()},
			record: recorded, asked: []string{"make web", "get web", "apply web"},
		},
		"an object that is gone is made again": {
			edge: edge{presence: members.Absent}, record: recorded, asked: []string{"make web"},
		},
		"an object whose kind is served no more is not taken for there": {
			edge:   edge{presence: members.Unserved, refuse: fmt.Errorf("%w: Deployment", members.ErrNotServed)},
			record: recorded, asked: []string{"make web"}, failed: "does not serve this kind",
		},
		"an object that is on its way out is waited for, and is not called applied": {
			edge: edge{presence: members.Present, observed: ours(func(o *members.Observed) { o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} })}, record: recorded,
			failed: "is being deleted in the cluster: it is made anew",
		},
		"one that is on its way out and is to change is not as it should be": {
			edge: edge{presence: members.Present, observed: ours(func(o *members.Observed) { o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} })}, record: stale,
			failed: "is being deleted in the cluster",
		},
		"one that is on its way out and was never sent is waited for": {
			edge:   edge{presence: members.Present, observed: ours(going)},
			failed: "Deployment shop/web is being deleted in the cluster: it is made once it is gone; if it stays, look at its finalizers there",
		},
		"an object of somebody else's is left alone": {
			edge: edge{presence: members.Absent, live: parse(t, unmanaged)}, asked: []string{"make web", "get web"}, failed: "already exists in the cluster",
		},
		"unless the manifest overwrites": {
			edge:  edge{presence: members.Absent, live: parse(t, unmanaged)},
			text:  strings.Replace(manifestText, `"work.karmada.io/name"`, `"work.karmada.io/conflict-resolution":"overwrite","work.karmada.io/name"`, 1),
			asked: []string{"make web", "get web", "apply web"},
		},
		"a suspended Work sends nothing": {
			edge: edge{presence: members.Present, observed: ours(asIs)}, record: stale, suspend: true,
		},
		"what somebody removed while it is suspended is told, and stays away": {
			edge: edge{presence: members.Absent}, record: recorded, suspend: true, asked: []string{"get web"}, differs: "Deployment shop/web was removed",
		},
		"so is what somebody removed before the next version": {
			edge: edge{presence: members.Absent}, record: stale, suspend: true, differs: "Deployment shop/web was removed",
		},
		"before the next version it is told that something was changed, and not what": {
			edge: edge{presence: members.Present, observed: ours(func(o *members.Observed) { o.Owned = "drifted" })}, record: stale, suspend: true,
			differs: "Deployment shop/web: others have changed, or taken over, fields of what was applied last",
		},
		"while it is suspended, too, it is awaited what stands": {
			edge: edge{presence: members.Unknown}, record: recorded, suspend: true,
			blocked: &waitqueue.Cause{Event: waitqueue.OnSync, Kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}},
		},
		"nor of what was never sent": {edge: edge{presence: members.Absent}, suspend: true},
		"a refusal of the member is a failure": {
			edge: edge{presence: members.Absent, refuse: errors.New("exceeded quota")}, asked: []string{"make web"}, failed: "exceeded quota",
		},
		"a namespace that is not there yet is waited for": {
			edge:    edge{presence: members.Absent, refuse: fmt.Errorf("%w: shop", members.ErrNoNamespace)},
			asked:   []string{"make web"},
			blocked: &waitqueue.Cause{Event: waitqueue.OnNamespace, Namespace: "shop"},
		},
		"a namespace that is being deleted there is waited for": {
			edge: edge{presence: members.Absent, refuse: &apierrors.StatusError{ErrStatus: metav1.Status{
				Reason: metav1.StatusReasonForbidden, Message: `deployments.apps "web" is forbidden: unable to create new content in namespace shop because it is being terminated`,
				Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}},
			}}},
			asked: []string{"make web"}, failed: "Namespace shop is being deleted in the cluster: Deployment shop/web is made once it is gone; if it stays, look at its finalizers there",
		},
		"a member that leaves requests unanswered is asked again": {
			edge: edge{presence: members.Absent, refuse: fmt.Errorf("ask: %w", members.ErrBusy)}, asked: []string{"make web"}, blocked: &waitqueue.Cause{Event: waitqueue.OnRetry},
		},
		"so is one that has too much to do": {
			edge: edge{presence: members.Absent, refuse: apierrors.NewTooManyRequests("busy", 1)}, asked: []string{"make web"}, blocked: &waitqueue.Cause{Event: waitqueue.OnRetry},
		},
		"a place in the member that is to be had again is waited for": {
			edge: edge{presence: members.Absent, refuse: fmt.Errorf("patch: %w", tenure.ErrLeaseLost)}, asked: []string{"make web"}, blocked: &waitqueue.Cause{Event: waitqueue.OnProof},
		},
		"a name made by the member could be made twice": {
			edge: edge{}, text: `{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"web-"}}`, failed: "has no name",
		},
		"a manifest that does not parse": {edge: edge{}, text: `{"kind":[]}`, failed: "does not parse"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := tc.text
			if text == "" {
				text = manifestText
			}
			w := testWorker(&tc.edge, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			work := testWork(text)
			work.Status.Applied = tc.record
			work.Spec.SuspendDispatching = ptr.To(tc.suspend)
			s := &state{key: workKey, work: work, member: &tc.edge}
			if _, err := w.reader.connect(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if _, err := w.applier.apply(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.asked, tc.edge.asked); diff != "" {
				t.Errorf("asked of the member (-want +got):\n%s", diff)
			}
			var waits *waitqueue.Cause
			if s.blocked != nil {
				waits = &s.blocked.Cause
			}
			if diff := cmp.Diff(tc.blocked, waits, cmp.AllowUnexported(impersonation.Lack{})); diff != "" {
				t.Errorf("waits for (-want +got):\n%s", diff)
			}
			if s.blocked == nil && (s.objects[0].failed == nil) != (tc.failed == "") || tc.failed != "" && !strings.Contains(s.objects[0].failed.Error(), tc.failed) {
				t.Errorf("failed with %v, want %q", s.failed(), tc.failed)
			}
			if d := s.drifts()[0]; tc.suspend && (d == nil) != (tc.differs == "") || tc.differs != "" && d.Text != tc.differs {
				t.Errorf("it is told to differ by %+v, want %q", d, tc.differs)
			}
		})
	}
}

// TestNoCredentialsInWhatAMemberSays checks that the condition Applied names the host of an address that a member's refusal
// quotes, and not who may read there.
func TestNoCredentialsInWhatAMemberSays(t *testing.T) {
	e := &edge{presence: members.Absent, refuse: apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "web",
		errors.New(`admission webhook "images.example" denied the request: GET https://bob:hunter2@reg.example/v2/web?token=hunter2: 401`))}
	w := testWorker(e, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	s := &state{key: workKey, work: testWork(manifestText), member: e}
	if _, err := w.reader.connect(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if _, err := w.applier.apply(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	got, _ := applied(s)
	if strings.Contains(got.Message, "hunter2") || !strings.HasSuffix(got.Message, "GET https://reg.example/v2/web: 401") {
		t.Errorf("message = %q", got.Message)
	}
}

func TestReplicasThatAreTheMembersAreNotReset(t *testing.T) {
	retained := strings.Replace(manifestText, `"labels":{`, `"labels":{"resourcetemplate.karmada.io/retain-replicas":"true",`, 1)
	owns := `,"managedFields":[{"manager":"flotilla","operation":"Apply","fieldsV1":{"f:spec":{"f:replicas":{}}}}]}`
	cases := map[string]struct {
		live string
		want any
	}{
		"somebody else scaled it: its replicas are left out": {strings.Replace(retained, `"replicas":5`, `"replicas":9`, 1), nil},
		"nobody else owns them: they keep their value": {
			strings.Replace(strings.Replace(retained, `"replicas":5`, `"replicas":3`, 1), `"web"}}`, `"web"}`+owns, 1), int64(3),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := &edge{presence: members.Present, observed: ours(asIs), live: parse(t, tc.live)}
			w := testWorker(e, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			s := &state{key: workKey, work: testWork(retained), member: e}
			if _, err := w.reader.connect(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if _, err := w.applier.apply(t.Context(), s); err != nil || s.objects[0].failed != nil {
				t.Fatal(err, s.failed())
			}
			spec, _ := e.sent.Object["spec"].(map[string]any)
			if diff := cmp.Diff(tc.want, spec["replicas"]); diff != "" {
				t.Errorf("replicas sent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDiscard(t *testing.T) {
	leaving, stays := &clusterv1alpha1.Cluster{}, &clusterv1alpha1.Cluster{}
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	leavingWell := leaving.DeepCopy()
	meta.SetStatusCondition(&leavingWell.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: "x"})
	cases := map[string]struct {
		edge     *edge // nil: not connected
		cluster  *clusterv1alpha1.Cluster
		preserve bool
		asked    []string
		lets     bool // whether the Work may go
	}{
		"an object of the Work is removed":  {&edge{presence: members.Present, observed: ours(asIs)}, stays, false, []string{"delete web u"}, true},
		"one that is to stay is unmarked":   {&edge{presence: members.Present, observed: ours(asIs)}, stays, true, []string{"unmark web"}, true},
		"one that is gone is no fault":      {&edge{presence: members.Absent}, stays, false, []string{"get web"}, true},
		"one that is going is waited for":   {&edge{presence: members.Present, observed: ours(going)}, stays, false, nil, false},
		"one that stays for a while, too":   {&edge{presence: members.Present, observed: ours(asIs), keeps: true}, stays, false, []string{"delete web u"}, false},
		"one that is going and was to stay": {&edge{presence: members.Present, observed: ours(going)}, stays, true, nil, true},
		"one that is going as its cluster leaves": {
			&edge{presence: members.Present, observed: ours(asIs), keeps: true}, leavingWell, false, []string{"delete web u"}, true,
		},
		"one of another Work that is going": {
			&edge{presence: members.Present, observed: ours(func(o *members.Observed) { going(o); o.Work.Name = "other" })}, stays, false, nil, true,
		},
		"one of another Work is left alone": {&edge{presence: members.Present, observed: ours(func(o *members.Observed) { o.Work.Name = "other" })}, stays, false, nil, true},
		"one without our mark is left alone": {
			&edge{presence: members.Present, observed: ours(func(o *members.Observed) { o.Managed = false })}, stays, false, nil, true,
		},
		"one that the watch has not shown yet is removed": {
			&edge{presence: members.Absent, live: parse(t, strings.Replace(manifestText, `"name":"web",`, `"name":"web","uid":"live",`, 1))}, stays, false, []string{"get web", "delete web live"}, true,
		},
		"what the watch does not know is asked for": {
			&edge{presence: members.Unknown, live: parse(t, strings.Replace(manifestText, `"name":"web",`, `"name":"web","uid":"live",`, 1))}, stays, false, []string{"get web", "delete web live"}, true,
		},
		"a member that refuses keeps the Work":                      {&edge{presence: members.Present, observed: ours(asIs), refuse: errors.New("denied")}, stays, false, []string{"delete web u"}, false},
		"a member that is out of reach keeps the Work":              {nil, stays, false, nil, false},
		"one that leaves but was well a moment ago keeps it too":    {nil, leavingWell, false, nil, false},
		"one that leaves and is out of reach lets it go":            {nil, leaving, false, nil, true},
		"a cluster that is gone lets it go":                         {nil, nil, false, nil, true},
		"a cluster that leaves and answers is cleaned nevertheless": {&edge{presence: members.Present, observed: ours(asIs)}, leaving, false, []string{"delete web u"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := testWorker(tc.edge, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			s := &state{key: workKey, work: testWork(manifestText), cluster: tc.cluster}
			s.work.Spec.PreserveResourcesOnDeletion = ptr.To(tc.preserve)
			if tc.edge != nil {
				s.member = tc.edge
			}
			_, err := w.lifetime.deleteObjects(t.Context(), s)
			var asked []string
			if tc.edge != nil {
				asked = tc.edge.asked
			}
			if diff := cmp.Diff(tc.asked, asked); diff != "" {
				t.Errorf("asked of the member (-want +got):\n%s", diff)
			}
			if (err == nil) != tc.lets {
				t.Errorf("deleteObjects = %v, should let go: %t", err, tc.lets)
			}
		})
	}
}

func TestUrgent(t *testing.T) {
	status := func(applied metav1.ConditionStatus, health workv1alpha1.ResourceHealth, raw string) *workv1alpha1.WorkStatus {
		return &workv1alpha1.WorkStatus{
			Conditions:       []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: applied}},
			ManifestStatuses: []workv1alpha1.ManifestStatus{{Health: health, Status: &runtime.RawExtension{Raw: []byte(raw)}}},
		}
	}
	cases := map[string]struct {
		was, is *workv1alpha1.WorkStatus
		want    bool
	}{
		"a first report that all is well":         {&workv1alpha1.WorkStatus{}, status("True", workv1alpha1.ResourceHealthy, "{}"), true},
		"a first report of what has yet to begin": {&workv1alpha1.WorkStatus{}, status("True", workv1alpha1.ResourceUnhealthy, "{}"), false},
		"a first report of a failure":             {&workv1alpha1.WorkStatus{}, status("False", workv1alpha1.ResourceUnhealthy, "{}"), true},
		"an object that is there no more":         {status("True", workv1alpha1.ResourceUnhealthy, "{}"), &workv1alpha1.WorkStatus{Conditions: status("True", "", "").Conditions}, true},
		"a failure to apply":                      {status("True", workv1alpha1.ResourceHealthy, "{}"), status("False", workv1alpha1.ResourceHealthy, "{}"), true},
		"a change of health":                      {status("True", workv1alpha1.ResourceHealthy, "{}"), status("True", workv1alpha1.ResourceUnhealthy, "{}"), true},
		"progress of numbers":                     {status("True", workv1alpha1.ResourceUnhealthy, `{"a":1}`), status("True", workv1alpha1.ResourceUnhealthy, `{"a":2}`), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := urgent(tc.was, tc.is); got != tc.want {
				t.Errorf("urgent = %t", got)
			}
		})
	}
}

// TestALargeWorkStillReports: statuses that would make the Work too large for the hub's store are
// left out, and that is reported.
func TestALargeWorkStillReports(t *testing.T) {
	const refused = 1536 << 10
	raw := `{"said":"` + strings.Repeat("<", 30<<10) + `"}` // six bytes each, once stored
	for name, tc := range map[string]struct {
		manifest int
		want     string
	}{
		"a small manifest": {1 << 10, ""},
		"a large manifest": {1<<20 + 400<<10, "Deployment shop/web: its status is too large to be kept beside what the Work holds"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(manifestText, `"replicas":5`, `"replicas":5,"x":"`+strings.Repeat("x", tc.manifest)+`"`, 1)
			e := &edge{presence: members.Present, observed: ours(func(o *members.Observed) {
				o.Status, o.Health = &runtime.RawExtension{Raw: []byte(raw)}, workv1alpha1.ResourceHealthy
			})}
			w := testWorker(e, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			work := testWork(text)
			work.Status.Applied = []workv1alpha1.AppliedHash{{Desired: members.Hash([]byte(text)), Observed: "owned"}}
			s := &state{key: workKey, work: work, member: e}
			if _, err := loopOf(t, w, s); err != nil {
				t.Fatal(err)
			}
			got := ""
			if c := meta.FindStatusCondition(s.status.Conditions, workv1alpha1.WorkInterpreted); c != nil {
				got = c.Message
			}
			if len(s.status.ManifestStatuses) != 1 || s.status.ManifestStatuses[0].Health != workv1alpha1.ResourceHealthy || got != tc.want {
				t.Errorf("reported: %d objects, %q, want %q", len(s.status.ManifestStatuses), got, tc.want)
			}
			if kept := s.status.ManifestStatuses[0].Status != nil; kept != (tc.want == "") {
				t.Errorf("its status is kept: %t", kept)
			}
			work = work.DeepCopy()
			work.Status = *s.status
			data, err := json.Marshal(work)
			if err != nil || len(data) > refused {
				t.Errorf("%d bytes, %v", len(data), err)
			}
		})
	}
}

// TestAMemberThatFailsIsAskedAgainSoonWhileTheHubIsAway: a status that cannot be written, as the hub is away,
// does not delay what can be done without the hub.
func TestAMemberThatFailsIsAskedAgainSoonWhileTheHubIsAway(t *testing.T) {
	for name, tc := range map[string]struct {
		refuse error
		most   time.Duration
	}{
		"the member does as it is told": {nil, backoff.LastRetry},
		"the member fails":              {apierrors.NewInternalError(errors.New("a webhook is away")), 4 * backoff.FirstRetry},
	} {
		t.Run(name, func(t *testing.T) {
			work := testWork(manifestText)
			away := interceptor.Funcs{SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
				return fmt.Errorf("patch: %w", hub.ErrAway)
			}}
			e := &edge{presence: members.Absent, refuse: tc.refuse}
			p := testParts(e, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			p.hub = fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(work, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}}).
				WithInterceptorFuncs(away).Build()
			p.wrote = writecache.New[*workv1alpha1.Work](p.opts.Clock)
			p.delayed = debounce.New[client.ObjectKey](debounce.Options{Clock: p.opts.Clock})
			w := p.worker("eu-1", elsewhere{})
			var result reconcile.Result
			for range 2 { // a change may be delayed for a moment first
				var err error
				if result, err = w.Reconcile(t.Context(), reconcile.Request{NamespacedName: workKey}); err != nil {
					t.Fatal(err)
				}
			}
			if result.RequeueAfter <= 0 || result.RequeueAfter > tc.most || tc.refuse == nil && result.RequeueAfter != tc.most {
				t.Errorf("looked at again after %s, want %s at most", result.RequeueAfter, tc.most)
			}
		})
	}
}

// TestRemovalOfWhatLeavesFirst: what runs Pods is there until these have ended, if nothing may start elsewhere before.
func TestRemovalOfWhatLeavesFirst(t *testing.T) {
	read := strings.NewReplacer("apps/v1", "v1", "Deployment", "ConfigMap").Replace(manifestText)
	for name, tc := range map[string]struct {
		text     string
		observed *members.Observed
		asked    []string
		lets     bool
	}{
		"what runs":             {manifestText, ours(asIs), []string{"delete web u in Foreground"}, false},
		"what is going already": {manifestText, ours(going), nil, false},
		"what runs nothing":     {read, ours(asIs), []string{"delete web u"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := &edge{presence: members.Present, observed: tc.observed, keeps: true}
			w := testWorker(e, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			s := &state{key: workKey, work: testWork(tc.text), cluster: &clusterv1alpha1.Cluster{}, member: e}
			s.work.Annotations = map[string]string{workv1alpha2.LeavesFirstAnnotation: "true"}
			_, err := w.lifetime.deleteObjects(t.Context(), s)
			if diff := cmp.Diff(tc.asked, e.asked); diff != "" {
				t.Errorf("asked of the member (-want +got):\n%s", diff)
			}
			if (err == nil) != tc.lets {
				t.Errorf("deleteObjects = %v, should let go: %t", err, tc.lets)
			}
		})
	}
}
