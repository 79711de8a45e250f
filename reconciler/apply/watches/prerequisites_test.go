package watches

import (
	"context"
	"slices"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// pending is a queue that records what is added with a delay.
type pending struct {
	workqueue.TypedRateLimitingInterface[search]
	looks map[time.Duration]search
}

func (q *pending) AddAfter(l search, after time.Duration) { q.looks[after] = l }

// only is the one Kustomization that there is.
type only struct{ ks *kustomizev1.Kustomization }

func (o only) Find(_ context.Context, match func(*kustomizev1.Kustomization) bool, _ ...client.ListOption) []reconcile.Request {
	if !match(o.ks) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o.ks)}}
}

// inbox counts what it gets.
type inbox struct{ requests int }

func (i *inbox) Add(reconcile.Request, bool) { i.requests++ }

// binding returns a RoleBinding, as a metadata-only watch has it.
func binding(namespace, version string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "edit", ResourceVersion: version}}
	m.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"))
	return m
}

// rights is the place of RoleBindings among the kinds.
func rights(t *testing.T, w *Prerequisites) int {
	t.Helper()
	for i, k := range w.kinds {
		if _, ok := k.object.(*rbacv1.RoleBinding); ok {
			return i
		}
	}
	t.Fatal("nobody watches RoleBindings")
	return 0
}

// TestItIsLookedForAgain: what a right has no effect on yet is tried again soon, and so is what says only then that it
// was refused.
func TestItIsLookedForAgain(t *testing.T) {
	web := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	woken := &inbox{}
	w := NewPrerequisites(only{web}, woken)
	i, queue := rights(t, w), &pending{looks: map[time.Duration]search{}}
	w.handler(i).Create(t.Context(), event.CreateEvent{Object: binding("shop", "1")}, queue)
	says := func(reason string) {
		web.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionFalse, Reason: reason}}
	}
	var got []int
	for _, at := range []struct {
		after  time.Duration
		reason string
	}{
		{250 * time.Millisecond, meta.ProgressingReason}, // the run that is refused has not ended
		{time.Second, applier.ReasonForbidden},
		{5 * time.Second, applier.ReasonForbidden}, // the run came before the right
		{20 * time.Second, meta.ReconciliationSucceededReason},
	} {
		says(at.reason)
		l, ok := queue.looks[at.after]
		if !ok {
			t.Fatalf("nobody looks after %s", at.after)
		}
		delete(queue.looks, at.after)
		if _, err := w.Reconcile(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		got = append(got, woken.requests)
	}
	if diff := cmp.Diff([]int{0, 1, 2, 2}, got); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
	if len(queue.looks) != 0 {
		t.Errorf("it is looked for more often: %v", queue.looks)
	}
}

// TestWhatIsNoChange: what was there before, and what a watch repeats, makes nobody look.
func TestWhatIsNoChange(t *testing.T) {
	w := NewPrerequisites(nil, nil)
	i, queue := rights(t, w), &pending{looks: map[time.Duration]search{}}
	w.handler(i).Create(t.Context(), event.CreateEvent{Object: binding("shop", "1"), IsInInitialList: true}, queue)
	w.handler(i).Update(t.Context(), event.UpdateEvent{ObjectOld: binding("shop", "1"), ObjectNew: binding("shop", "1")}, queue)
	w.handler(i).Delete(t.Context(), event.DeleteEvent{Object: binding("shop", "1")}, queue)
	if len(queue.looks) != 0 {
		t.Errorf("looks: %v", queue.looks)
	}
}

// TestANamespaceThatGoesIsAwaited: what could not be created in it, as it was being deleted, is tried again.
func TestANamespaceThatGoesIsAwaited(t *testing.T) {
	web := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	web.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionFalse, Reason: inventory.ReasonNamespaceTerminating}}
	woken := &inbox{}
	w := NewPrerequisites(only{web}, woken)
	i := slices.IndexFunc(w.kinds, func(k kind) bool { _, is := k.object.(*corev1.Namespace); return is })
	queue := &pending{looks: map[time.Duration]search{}}
	gone := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "pay"}}
	w.handler(i).Delete(t.Context(), event.DeleteEvent{Object: gone}, queue)
	for _, l := range queue.looks {
		if _, err := w.Reconcile(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	if woken.requests == 0 {
		t.Error("nobody is woken")
	}
}

// TestWhoMayWait: a tenant's objects mapper that tenant's Kustomizations, and those that name its namespace.
func TestWhoMayWait(t *testing.T) {
	reasons := []string{applier.ReasonForbidden}
	for name, tc := range map[string]struct {
		namespace, reason, message string
		status                     metav1.ConditionStatus
		want                       bool
	}{
		"one of the namespace":           {"shop", applier.ReasonForbidden, "", metav1.ConditionFalse, true},
		"one of the whole fleet":         {"", applier.ReasonForbidden, "", metav1.ConditionFalse, true},
		"one that is named":              {"books", applier.ReasonForbidden, `in the namespace "books"`, metav1.ConditionFalse, true},
		"one of another namespace":       {"books", applier.ReasonForbidden, `in the namespace "bookshop"`, metav1.ConditionFalse, false},
		"what waits for something else":  {"shop", applier.ReasonUnknownKind, "", metav1.ConditionFalse, false},
		"what is ready waits for nobody": {"shop", applier.ReasonForbidden, "", metav1.ConditionTrue, false},
	} {
		t.Run(name, func(t *testing.T) {
			ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			ks.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: tc.status, Reason: tc.reason, Message: tc.message}}
			if got := waits(reasons, tc.namespace)(ks); got != tc.want {
				t.Errorf("waits: %v, want %v", got, tc.want)
			}
		})
	}
}
