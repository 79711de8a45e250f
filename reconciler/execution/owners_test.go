package execution

import (
	"context"
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
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/author"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/reconciler/debounce"
	"github.com/flotilla-io/flotilla/reconciler/execution/backoff"
	"github.com/flotilla-io/flotilla/reconciler/execution/manifest"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// yard is a member that keeps one object.
type yard struct {
	there *unstructured.Unstructured // nil: nothing
	blind bool                       // the watch has not shown it yet
	reads func()                     // what happens while it is read; nil for nothing
	asked []string                   // which Work applied or removed what
	uids  int

	refuses error  // why nothing is removed
	served  string // the only version that is; empty for any
}

func (y *yard) Read(schema.GroupVersionKind, types.NamespacedName) (*members.Observed, members.Presence) {
	if y.reads != nil {
		y.reads()
	}
	switch {
	case y.blind:
		return nil, members.Unknown
	case y.there == nil:
		return nil, members.Absent
	}
	return y.observed(), members.Present
}

func (y *yard) observed() *members.Observed {
	out := members.MetadataOf(y.there)
	from, _, _ := unstructured.NestedString(y.there.Object, "data", "from")
	out.Owned, out.Health = "owned by "+from, workv1alpha1.ResourceHealthy
	return out
}

func (y *yard) Get(_ context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	if y.served != "" && gvk.Version != y.served {
		return nil, fmt.Errorf("%w: %s", members.ErrNotServed, gvk)
	}
	if y.there == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	return y.there.DeepCopy(), nil
}

func (y *yard) Served(_ context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	if y.served == "" {
		return gvk, nil
	}
	return gvk.GroupKind().WithVersion(y.served), nil
}

func (y *yard) Autoscaled(context.Context, schema.GroupVersionKind, types.NamespacedName) (bool, error) {
	return false, nil
}

func (y *yard) Warnings(context.Context, string, types.UID) ([]corev1.Event, error) {
	return nil, nil
}

func (y *yard) Pods(context.Context, string, metav1.ListOptions) ([]corev1.Pod, error) {
	return nil, nil
}

func (y *yard) Standing() hubclaim.Standing { return hubclaim.Standing{} }

func (y *yard) Apply(_ context.Context, desired *unstructured.Unstructured) (*members.Observed, error) {
	uid := types.UID("")
	if y.there != nil {
		uid = y.there.GetUID()
		if desired.GetResourceVersion() == members.OnlyNew {
			return nil, apierrors.NewConflict(schema.GroupResource{}, desired.GetName(), fmt.Errorf("it is there"))
		}
	}
	if uid == "" {
		y.uids++
		uid = types.UID(fmt.Sprintf("uid-%d", y.uids))
	}
	y.there = desired.DeepCopy()
	y.there.SetUID(uid)
	y.asked = append(y.asked, desired.GetAnnotations()[workv1alpha2.WorkNameAnnotation]+" applies "+string(uid))
	return y.observed(), nil
}

func (y *yard) As(author.Account) (members.Sender, error) {
	return nil, author.ErrUnknown // nobody asks
}

func (y *yard) Patch(context.Context, schema.GroupVersionKind, types.NamespacedName, []byte) error {
	y.asked = append(y.asked, "somebody patches")
	return nil
}

func (y *yard) Delete(_ context.Context, _ schema.GroupVersionKind, _ types.NamespacedName, uid types.UID, _ metav1.DeletionPropagation) (bool, error) {
	y.asked = append(y.asked, "removed "+string(uid))
	if y.refuses != nil {
		return false, y.refuses
	}
	if len(y.there.GetFinalizers()) > 0 {
		y.there.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
		return false, nil
	}
	y.there = nil
	return true, nil
}

// two is a worker with the Works a and b, which have a manifest for the same object.
type two struct {
	t      *testing.T
	yard   *yard
	hub    client.WithWatch
	parts  *parts
	loop   *Reconciler
	worker *worker
	events *events
	clock  *clocktesting.FakePassiveClock
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func workNamed(name, object string) *workv1alpha1.Work {
	return &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: workKey.Namespace, Name: name, UID: types.UID(name), Generation: 1, Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer},
		},
		Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{
			Raw: fmt.Appendf(nil, `{"apiVersion":"v1","data":{"from":%q},"kind":"ConfigMap","metadata":{"name":%q,"namespace":"shop"}}`, name, object),
		}}}}},
	}
}

func newTwo(t *testing.T) *two {
	t.Helper()
	return newTwoOf(t, workNamed("a", "settings"), workNamed("b", "settings"))
}

func newTwoOf(t *testing.T, works ...client.Object) *two {
	t.Helper()
	f := &two{t: t, yard: &yard{}}
	f.hub = fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(&workv1alpha1.Work{}).
		WithObjects(works...).WithObjects(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}}).Build()
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	f.parts, f.events, f.clock = testParts(nil, clock), &events{}, clock
	f.parts.hub, f.parts.events = f.hub, f.events
	f.parts.connected = func(string) (member, bool) { return f.yard, true }
	f.parts.wrote = writecache.New[*workv1alpha1.Work](clock)
	f.parts.delayed = debounce.New[client.ObjectKey](debounce.Options{Clock: clock})
	f.loop = of(f.parts)
	f.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(f.queue.ShutDown)
	f.restart()
	return f
}

// restart replaces the worker by a new one, which has nothing in memory.
func (f *two) restart() {
	f.worker = f.loop.workers.assemble("eu-1")
	f.loop.workers.running["eu-1"] = running{worker: f.worker}
	f.worker.load(f.t.Context(), workKey.Namespace) // before the queue is open, as the test decides what is reconciled
	f.worker.queue.Open(f.queue)
}

// look reconciles Works, one after the other.
func (f *two) reconcile(names ...string) {
	f.t.Helper()
	for _, name := range names {
		if _, err := f.worker.Reconcile(f.t.Context(), reconcile.Request{NamespacedName: key(name)}); err != nil {
			f.t.Fatal(err)
		}
	}
}

func key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: workKey.Namespace, Name: name}
}

func (f *two) work(name string) *workv1alpha1.Work {
	f.t.Helper()
	work := &workv1alpha1.Work{}
	if err := f.hub.Get(f.t.Context(), key(name), work); err != nil {
		f.t.Fatal(err)
	}
	return work
}

// applied returns the condition Applied of a Work.
func (f *two) applied(name string) string {
	f.t.Helper()
	c := meta.FindStatusCondition(f.work(name).Status.Conditions, workv1alpha1.WorkApplied)
	switch {
	case c == nil:
		return "nothing"
	case c.Status == metav1.ConditionTrue:
		return "applied"
	}
	return c.Message
}

// queued returns the Works in the queue.
func (f *two) queued() string {
	var out []string
	for f.queue.Len() > 0 {
		req, _ := f.queue.Get()
		f.queue.Done(req)
		out = append(out, req.Name)
	}
	return strings.Join(out, " ")
}

// change edits a Work and notifies the loop.
func (f *two) change(name string, edit func(*workv1alpha1.Work)) {
	f.t.Helper()
	was := f.work(name)
	is := was.DeepCopy()
	edit(is)
	is.Generation++
	if err := f.hub.Update(f.t.Context(), is); err != nil {
		f.t.Fatal(err)
	}
	f.loop.workSeen(was, is)
}

func (f *two) asked(want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.yard.asked); diff != "" {
		f.t.Errorf("asked of the member (-want +got):\n%s", diff)
	}
}

const ownedByA = "Failed to apply all manifests (0/1): ConfigMap shop/settings is held by the Work karmada-es-eu-1/a, " +
	"and one object comes from one Work only: take it out of one of the two"

func TestOfTwoWorksWithOneObjectOnlyTheFirstIsApplied(t *testing.T) {
	for name, blind := range map[string]bool{"that the watch shows": false, "that the watch has not shown yet": true} {
		t.Run(name, func(t *testing.T) {
			f := newTwo(t)
			f.reconcile("a")
			f.yard.blind = blind
			f.reconcile("b")
			f.yard.blind = false
			f.reconcile("a", "b", "a")
			f.restart()
			f.reconcile("b", "a")
			f.asked("a applies uid-1")
			if got := f.applied("a"); got != "applied" {
				t.Errorf("a: %s", got)
			}
			if diff := cmp.Diff(ownedByA, f.applied("b")); diff != "" {
				t.Errorf("b (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheLastOfTwoThatWereAppliedKeepsTheObject: two Works were both applied,
// in turns.
func TestTheLastOfTwoThatWereAppliedKeepsTheObject(t *testing.T) {
	f := newTwo(t)
	f.reconcile("a")
	b := f.work("b")
	b.Status.Applied = []workv1alpha1.AppliedHash{{Desired: members.Hash(b.Spec.Workload.Manifests[0].Raw), Observed: "owned by b"}}
	if err := f.hub.Status().Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	f.reconcile("b", "a", "b")
	f.asked("a applies uid-1")
	if diff := cmp.Diff(ownedByA, f.applied("b")); diff != "" {
		t.Errorf("b (-want +got):\n%s", diff)
	}
	if got := f.work("b").Status.Applied; len(got) > 0 {
		t.Errorf("b still takes it for applied: %v", got)
	}
}

func TestAWorkGetsTheObjectThatAnotherLetsGoOf(t *testing.T) {
	cases := map[string]struct {
		happens func(*two)
		queued  string
		asked   []string
	}{
		"that asks for another one now": {
			happens: func(f *two) {
				f.change("a", func(w *workv1alpha1.Work) { w.Spec = workNamed("a", "other").Spec })
			},
			queued: "a b", asked: []string{"a applies uid-1", "b applies uid-1"},
		},
		"that goes: the object stays": {
			happens: func(f *two) {
				if err := f.hub.Delete(f.t.Context(), f.work("a")); err != nil {
					f.t.Fatal(err)
				}
				gone := f.work("a")
				f.reconcile("a") // deletes the object, and removes the finalizer
				f.loop.workGone(gone)
			},
			queued: "b", asked: []string{"a applies uid-1", "b applies uid-1"},
		},
		"that goes together with it: the object goes, too": {
			happens: func(f *two) {
				for _, name := range []string{"b", "a"} {
					if err := f.hub.Delete(f.t.Context(), f.work(name)); err != nil {
						f.t.Fatal(err)
					}
				}
				f.reconcile("a", "b")
			},
			asked: []string{"a applies uid-1", "removed uid-1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newTwo(t)
			f.reconcile("a", "b")
			f.queued()
			tc.happens(f)
			queued := f.queued()
			if diff := cmp.Diff(tc.queued, queued); diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
			if strings.Contains(queued, "b") {
				f.reconcile("b")
				if got := f.applied("b"); got != "applied" {
					t.Errorf("b: %s", got)
				}
			}
			f.asked(tc.asked...)
		})
	}
}

// TestALetGoBetweenTheLookAndTheWaitIsSeen: the other Work releases the object while this
// one is about to wait for that.
func TestALetGoBetweenTheLookAndTheWaitIsSeen(t *testing.T) {
	f := newTwo(t)
	f.reconcile("a")
	s, found, err := f.worker.read(t.Context(), key("b"))
	if err != nil || !found {
		t.Fatal(found, err)
	}
	m := manifest.Parse(0, s.work.Spec.Workload.Manifests[0].Raw)
	since := f.worker.queue.Begin(s.key)
	owned := f.worker.owners.Conflict(t.Context(), s.work, s.member, &m, f.yard.observed())
	if owned == nil {
		t.Fatal("nobody owns it")
	}
	f.worker.queue.Retries.When(s.key)
	f.worker.queue.Retries.When(s.key)
	f.change("a", func(w *workv1alpha1.Work) { w.Spec = workNamed("a", "other").Spec })
	s.objects = []object{{failed: owned}}
	next, err := f.worker.next(t.Context(), s, loop.Next{}, owned, since)
	if err != nil || next.RequeueAfter != backoff.FirstRetry {
		t.Errorf("looks again after %s, %v, want %s", next.RequeueAfter, err, backoff.FirstRetry)
	}
}

func TestOneWorkAtATimeSendsAnObject(t *testing.T) {
	f := newTwo(t)
	m := manifest.Parse(0, workNamed("a", "settings").Spec.Workload.Manifests[0].Raw)
	done, ok := f.worker.applier.sending.Begin(&m)
	if !ok {
		t.Fatal("somebody sends it")
	}
	f.reconcile("b")
	f.asked()
	if got := f.applied("b"); got != "nothing" {
		t.Errorf("b says %s", got)
	}
	done()
	f.reconcile("b")
	f.asked("b applies uid-1")
}
