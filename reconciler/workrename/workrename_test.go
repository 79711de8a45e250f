package workrename

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

const (
	before = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"work.karmada.io/name":"was"},"name":"a","namespace":"shop"}}`
	now    = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"work.karmada.io/name":"is"},"name":"a","namespace":"shop"}}`
)

func work(name, manifest string) *workv1alpha1.Work {
	return &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "karmada-es-eu-1", Name: name, UID: types.UID(name), Generation: 1, Labels: map[string]string{workv1alpha2.WorkPermanentIDLabel: "id"},
			Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer},
		},
		Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}}}},
	}
}

func applied() *workv1alpha1.Work {
	out := work("was", before)
	out.Status.Applied = []workv1alpha1.AppliedHash{{Desired: members.Hash([]byte(before)), Observed: "o", Replicas: ptr.To[int64](3)}}
	out.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	return out
}

// state is what stands on the hub.
type state struct {
	Works    []string
	Applied  []workv1alpha1.AppliedHash
	Kept     bool // the condition Applied
	Released bool // the former one, where it stands
}

func stateOf(t *testing.T, hub client.Client) state {
	t.Helper()
	var list workv1alpha1.WorkList
	if err := hub.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	out := state{}
	for _, w := range list.Items {
		out.Works = append(out.Works, w.Name)
		if w.Name == "is" {
			out.Applied, out.Kept = w.Status.Applied, len(w.Status.Conditions) > 0
		} else {
			out.Released = len(w.Finalizers) == 0 && ptr.Deref(w.Spec.SuspendDispatching, false)
		}
	}
	return out
}

// TestRename is interrupted after each of its writes, and called again.
func TestRename(t *testing.T) {
	inherited := []workv1alpha1.AppliedHash{{Desired: members.Hash([]byte(now)), Observed: "o", Replicas: ptr.To[int64](3)}}
	for name, tc := range map[string]struct {
		works  []client.Object
		writes int // that get through at first
		want   state
		fails  bool
		again  state
	}{
		"in one go":                     {works: []client.Object{applied(), work("is", now)}, writes: 3, want: state{Works: []string{"is"}, Applied: inherited, Kept: true}, again: state{Works: []string{"is"}, Applied: inherited, Kept: true}},
		"interrupted at once":           {works: []client.Object{applied(), work("is", now)}, want: state{Works: []string{"is", "was"}}, fails: true, again: state{Works: []string{"is"}, Applied: inherited, Kept: true}},
		"interrupted once it inherited": {works: []client.Object{applied(), work("is", now)}, writes: 1, want: state{Works: []string{"is", "was"}, Applied: inherited, Kept: true}, fails: true, again: state{Works: []string{"is"}, Applied: inherited, Kept: true}},
		"interrupted before the end": {
			works: []client.Object{applied(), work("is", now)}, writes: 2, want: state{Works: []string{"is", "was"}, Applied: inherited, Kept: true, Released: true}, fails: true,
			again: state{Works: []string{"is"}, Applied: inherited, Kept: true},
		},
		"with another content": {
			works: []client.Object{applied(), work("is", `{"kind":"ConfigMap"}`)}, writes: 3,
			want:  state{Works: []string{"is"}, Applied: applied().Status.Applied},
			again: state{Works: []string{"is"}, Applied: applied().Status.Applied},
		},
		"before the new one stands": {works: []client.Object{applied()}, writes: 3, want: state{Works: []string{"was"}}, again: state{Works: []string{"was"}}},
		"not of another Work": {
			works: []client.Object{applied(), func() *workv1alpha1.Work { w := work("is", now); w.Labels = nil; return w }()}, writes: 3,
			want: state{Works: []string{"is", "was"}}, again: state{Works: []string{"is", "was"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			left := tc.writes
			cut := errors.New("the plug is pulled")
			write := func(do func() error) error {
				if left--; left < 0 {
					return cut
				}
				return do()
			}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(&workv1alpha1.Work{}).WithObjects(tc.works...).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
					return write(func() error { return c.Patch(ctx, obj, patch, opts...) })
				},
				Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
					return write(func() error { return c.Delete(ctx, obj, opts...) })
				},
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
					return write(func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
				},
			}).Build()
			planned := work("is", now)
			rename := func() error {
				return New(hub, writecache.New[*workv1alpha1.Work](clocktesting.NewFakePassiveClock(time.Unix(0, 0)))).Rename(t.Context(), planned, "was")
			}
			if err := rename(); (err != nil) != tc.fails {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(tc.want, stateOf(t, hub)); diff != "" {
				t.Errorf("first (-want +got):\n%s", diff)
			}
			left = 3
			if err := rename(); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(tc.again, stateOf(t, hub)); diff != "" {
				t.Errorf("then (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatSomebodyWritesMeanwhileIsNotLost: a status that came in while the former one was
// read stays.
func TestWhatSomebodyWritesMeanwhileIsNotLost(t *testing.T) {
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(&workv1alpha1.Work{}).WithObjects(applied(), work("is", now)).Build()
	stale := &workv1alpha1.Work{}
	if err := hub.Get(t.Context(), client.ObjectKey{Namespace: "karmada-es-eu-1", Name: "is"}, stale); err != nil {
		t.Fatal(err)
	}
	fresh := stale.DeepCopy()
	fresh.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse}}
	if err := hub.Status().Update(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	err := New(hub, writecache.New[*workv1alpha1.Work](clocktesting.NewFakePassiveClock(time.Unix(0, 0)))).Take(t.Context(), stale, applied())
	if !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
}
