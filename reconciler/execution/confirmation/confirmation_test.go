package confirmation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/reconciler/execution/deletionrecheck"
)

// hub is a control plane with "web", which is placed in east and leaves west, whose agent asks. Second 100 is now.
type hub struct {
	t       *testing.T
	client  client.Client
	loop    *Reconciler
	clock   *clocktesting.FakePassiveClock
	answers time.Time // of east; zero: it has not
	held    bool
	did     []string
}

// Event implements loop.Recorder.
func (h *hub) Event(_ runtime.Object, _, reason, message string) {
	h.did = append(h.did, reason+": "+message[:strings.Index(message, " (")])
}

var key = client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace("west"), Name: workv1alpha2.WorkName("Deployment", "web", "shop")}

func newHub(t *testing.T) *hub {
	labels := map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "11111111-1111-1111-1111-111111111111"}
	work := func(cluster string) *workv1alpha1.Work {
		return &workv1alpha1.Work{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: key.Name, UID: "u", Labels: labels, Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer},
				Annotations: map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotationKey: "shop", workv1alpha2.ResourceBindingNameAnnotationKey: "web-deployment"},
			},
			Status: workv1alpha1.WorkStatus{
				Conditions:       []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}},
				ManifestStatuses: []workv1alpha1.ManifestStatus{{Health: workv1alpha1.ResourceHealthy}},
			},
		}
	}
	cluster := func(name string, mode clusterv1alpha1.ClusterSyncMode) *clusterv1alpha1.Cluster {
		return &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode},
			Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}},
		}
	}
	h := &hub{t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(100, 0))}
	h.client = fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(&workv1alpha1.Work{}).WithObjects(
		work("west"), work("east"), cluster("west", clusterv1alpha1.Pull), cluster("east", clusterv1alpha1.Push),
		&workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", Labels: labels}, Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
			Clusters: []workv1alpha2.TargetCluster{{Name: "east"}},
		}},
	).WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
		h.did = append(h.did, "answers")
		return c.Patch(ctx, obj, patch, opts...)
	}}).Build()
	if err := h.client.Delete(t.Context(), work("west")); err != nil {
		t.Fatal(err)
	}
	h.starts()
	h.asks("at 1")
	return h
}

// starts has the control plane start, with nothing in memory.
func (h *hub) starts() {
	h.loop = New(h.client, h, Options{
		Answers: func(_ string, asked time.Time) (time.Time, bool, time.Duration) {
			return time.Unix(0, 0), !h.answers.Before(asked), 300 * time.Millisecond
		},
		Hold: func(string) *hubclaim.Hold {
			if !h.held {
				return nil
			}
			return &hubclaim.Hold{}
		},
		Clock: h.clock,
	})
}

func (h *hub) work() *workv1alpha1.Work {
	h.t.Helper()
	w := &workv1alpha1.Work{}
	if err := h.client.Get(h.t.Context(), key, w); err != nil {
		h.t.Fatal(err)
	}
	return w
}

// asks has the agent ask.
func (h *hub) asks(question string) {
	h.t.Helper()
	w := h.work()
	w.Status.Conditions = append(w.Status.Conditions[:1], metav1.Condition{Type: workv1alpha1.WorkDeletionBlocked, Status: metav1.ConditionTrue, Reason: deletionrecheck.Reason, Message: question})
	if err := h.client.Status().Update(h.t.Context(), w); err != nil {
		h.t.Fatal(err)
	}
}

// ails has the copy in east be unhealthy.
func (h *hub) ails(health workv1alpha1.ResourceHealth) {
	h.t.Helper()
	w := &workv1alpha1.Work{}
	if err := h.client.Get(h.t.Context(), client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace("east"), Name: key.Name}, w); err != nil {
		h.t.Fatal(err)
	}
	w.Status.ManifestStatuses[0].Health = health
	if err := h.client.Status().Update(h.t.Context(), w); err != nil {
		h.t.Fatal(err)
	}
}

// looks runs the loop once.
func (h *hub) reconcile() {
	h.t.Helper()
	result, err := h.loop.Reconcile(h.t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil {
		h.t.Fatal(err)
	}
	if result.RequeueAfter > 0 {
		h.did = append(h.did, "again in "+result.RequeueAfter.String())
	}
}

// TestAnswers: an agent gets an answer to the question that it asks now, once another copy is known to be healthy since that was asked, and
// one answer to each.
func TestAnswers(t *testing.T) {
	const stays = "DeletionBlocked: Deployment shop/web is healthy in none of the clusters that it is placed in"
	for name, tc := range map[string]struct {
		happens func(h *hub)
		want    []string
	}{
		"the other cluster answers": {func(h *hub) { h.answers = time.Unix(100, 0); h.reconcile(); h.reconcile() }, []string{"answers"}},
		"it answers after a while": {func(h *hub) {
			h.answers = time.Unix(99, 0)
			h.reconcile()
			h.clock.SetTime(time.Unix(103, 0))
			h.answers = time.Unix(101, 0)
			h.reconcile()
		}, []string{"again in 300ms", "answers"}},
		"what it answered before the control plane started is not believed": {func(h *hub) {
			h.reconcile()
			h.clock.SetTime(time.Unix(103, 0))
			h.answers = time.Unix(101, 0)
			h.starts()
			h.reconcile()
		}, []string{"again in 300ms", "again in 300ms"}},
		"the copy there is unhealthy, and gets well": {func(h *hub) {
			h.answers = time.Unix(100, 0)
			h.ails(workv1alpha1.ResourceUnhealthy)
			h.reconcile()
			h.reconcile()
			h.ails(workv1alpha1.ResourceHealthy)
			h.reconcile()
		}, []string{stays, "again in 5s", "again in 5s", "answers"}},
		"the agent was away once more": {func(h *hub) {
			h.answers = time.Unix(100, 0)
			h.reconcile()
			h.clock.SetTime(time.Unix(110, 0))
			h.asks("at 2")
			h.reconcile()
			h.answers = time.Unix(110, 0)
			h.reconcile()
		}, []string{"answers", "again in 300ms", "answers"}},
		"nothing may be removed there, as the store was set back": {func(h *hub) { h.answers = time.Unix(100, 0); h.held = true; h.reconcile() }, []string{"again in 30s"}},
		"the cluster is in push mode by now": {func(h *hub) {
			c := &clusterv1alpha1.Cluster{}
			if err := h.client.Get(h.t.Context(), client.ObjectKey{Name: "west"}, c); err != nil {
				h.t.Fatal(err)
			}
			c.Spec.SyncMode = clusterv1alpha1.Push
			if err := h.client.Update(h.t.Context(), c); err != nil {
				h.t.Fatal(err)
			}
			h.answers = time.Unix(100, 0)
			h.reconcile()
		}, nil},
		"the template is deleted": {func(h *hub) {
			if err := h.client.Delete(h.t.Context(), &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}); err != nil {
				h.t.Fatal(err)
			}
			h.reconcile()
		}, []string{"answers"}},
		"the Work is gone": {func(h *hub) {
			h.reconcile()
			w := h.work()
			w.Finalizers = nil
			if err := h.client.Update(h.t.Context(), w); err != nil {
				h.t.Fatal(err)
			}
			h.reconcile()
			if len(h.loop.open) > 0 {
				h.did = append(h.did, fmt.Sprint(h.loop.open))
			}
		}, []string{"again in 300ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			tc.happens(h)
			if diff := cmp.Diff(tc.want, h.did); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if slices.Contains(h.did, "answers") {
				if w := h.work(); w.Annotations[workv1alpha2.RemovalConfirmedAnnotation] != deletionrecheck.Question(w) {
					t.Errorf("the answer is %q", w.Annotations)
				}
			}
		})
	}
}

// TestOrdinaryRemovalsAreNotLookedAt: the loop takes up what asks, and lets go of what asked.
func TestOrdinaryRemovalsAreNotLookedAt(t *testing.T) {
	h := newHub(t)
	asking, quiet := h.work(), h.work()
	quiet.Status.Conditions = quiet.Status.Conditions[:1]
	got := []bool{h.loop.concerns(quiet), h.loop.concerns(asking)}
	h.reconcile()
	got = append(got, h.loop.concerns(quiet))
	h.answers = time.Unix(100, 0)
	h.reconcile()
	got = append(got, h.loop.concerns(h.work()))
	h.reconcile()
	got = append(got, h.loop.concerns(h.work()))
	if diff := cmp.Diff([]bool{false, true, true, true, false}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
