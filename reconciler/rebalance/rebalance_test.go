package rebalance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1alpha1 "github.com/flotilla-io/flotilla/api/apps/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(after time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(noon.Add(after))) }

func workload(name string) appsv1alpha1.ObjectReference {
	if strings.HasPrefix(name, "role-") {
		return appsv1alpha1.ObjectReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: name}
	}
	return appsv1alpha1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}
}

// bindingOf was placed at noon.
func bindingOf(name string, change ...func(workv1alpha2.Binding)) client.Object {
	w := workload(name)
	var b workv1alpha2.Binding = &workv1alpha2.ResourceBinding{}
	if w.Namespace == "" {
		b = &workv1alpha2.ClusterResourceBinding{}
	}
	key := keyOf(w)
	b.SetNamespace(key.Namespace)
	b.SetName(key.Name)
	b.SetUID("b-1")
	b.SetGeneration(1)
	b.BindingSpec().Resource = workv1alpha2.ObjectReference{APIVersion: w.APIVersion, Kind: w.Kind, Namespace: w.Namespace, Name: w.Name}
	b.BindingStatus().LastScheduledTime = at(0)
	for _, f := range change {
		f(b)
	}
	return b.(client.Object)
}

// rebalancer was made a minute after noon.
func rebalancer(names ...string) *appsv1alpha1.WorkloadRebalancer {
	r := &appsv1alpha1.WorkloadRebalancer{ObjectMeta: metav1.ObjectMeta{Name: "move", UID: "r-1", Generation: 1, CreationTimestamp: *at(time.Minute)}}
	for _, name := range names {
		r.Spec.Workloads = append(r.Spec.Workloads, workload(name))
	}
	return r
}

// fleet is a hub with the loop, which counts writes.
type fleet struct {
	*testing.T
	client.Client
	clock  *clocktesting.FakeClock
	loop   *Reconciler
	writes int
	refuse string // bindings of that name cannot be written
	mute   bool   // statuses cannot be written
}

func fleetOf(t *testing.T, objects ...client.Object) *fleet {
	f := &fleet{T: t, clock: clocktesting.NewFakeClock(noon.Add(time.Hour))}
	f.Client = fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).
		WithStatusSubresource(&appsv1alpha1.WorkloadRebalancer{}, &workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if obj.GetName() == f.refuse {
					return errors.New("no answer")
				}
				f.writes++
				return c.Patch(ctx, obj, patch, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				if f.mute {
					return errors.New("no answer")
				}
				f.writes++
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		}).Build()
	f.loop = New(f.Client, Options{Clock: f.clock, Abreast: 1})
	return f
}

func (f *fleet) reconcile() (reconcile.Result, error) {
	return f.loop.Reconcile(f.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "move"}})
}

// says is the status in short.
func (f *fleet) says() string {
	f.Helper()
	r := &appsv1alpha1.WorkloadRebalancer{}
	if err := f.Get(f.Context(), client.ObjectKey{Name: "move"}, r); err != nil {
		return "gone"
	}
	var out []string
	for _, w := range r.Status.ObservedWorkloads {
		out = append(out, strings.TrimSuffix(fmt.Sprintf("%s %s %s", w.Workload.Name, w.Result, w.Reason), " "))
	}
	finished := "unfinished"
	if r.Status.FinishTime != nil {
		finished = "finished after " + r.Status.FinishTime.Sub(noon).String()
	}
	return fmt.Sprintf("%s; generation %d, %s", strings.Join(out, ", "), r.Status.ObservedGeneration, finished)
}

// asked is when a placement was asked for; zero if it was not.
func (f *fleet) asked(name string) time.Duration {
	f.Helper()
	b := bindingOf(name)
	if err := f.Get(f.Context(), client.ObjectKeyFromObject(b), b); err != nil {
		f.Fatal(err)
	}
	if at := b.(workv1alpha2.Binding).BindingSpec().RescheduleTriggeredAt; at != nil {
		return at.Sub(noon)
	}
	return 0
}

func (f *fleet) edit(change func(r *appsv1alpha1.WorkloadRebalancer)) {
	f.Helper()
	r := &appsv1alpha1.WorkloadRebalancer{}
	if err := f.Get(f.Context(), client.ObjectKey{Name: "move"}, r); err != nil {
		f.Fatal(err)
	}
	change(r)
	r.Generation++
	if err := f.Update(f.Context(), r); err != nil {
		f.Fatal(err)
	}
}

func TestOneRebalancer(t *testing.T) {
	cases := map[string]struct {
		objects []client.Object
		names   []string
		status  string
		asked   map[string]time.Duration
	}{
		"workloads of both scopes, one without a binding": {
			objects: []client.Object{bindingOf("web"), bindingOf("role-a")}, names: []string{"web", "gone", "role-a"},
			status: "gone Failed ReferencedBindingNotFound, web Successful, role-a Successful; generation 1, finished after 1h0m0s",
			asked:  map[string]time.Duration{"web": time.Minute, "role-a": time.Minute},
		},
		"named twice": {
			objects: []client.Object{bindingOf("web")}, names: []string{"web", "web"},
			status: "web Successful; generation 1, finished after 1h0m0s", asked: map[string]time.Duration{"web": time.Minute},
		},
		"placed since it was asked for": {
			objects: []client.Object{bindingOf("web", func(b workv1alpha2.Binding) { b.BindingStatus().LastScheduledTime = at(2 * time.Minute) })}, names: []string{"web"},
			status: "web Successful; generation 1, finished after 1h0m0s", asked: map[string]time.Duration{"web": 2*time.Minute + time.Second},
		},
		"asked for before by another": {
			objects: []client.Object{bindingOf("web", func(b workv1alpha2.Binding) { b.BindingSpec().RescheduleTriggeredAt = at(time.Second) })}, names: []string{"web"},
			status: "web Successful; generation 1, finished after 1h0m0s", asked: map[string]time.Duration{"web": time.Minute},
		},
		"asked for since, by another or before a crash": {
			objects: []client.Object{bindingOf("web", func(b workv1alpha2.Binding) { b.BindingSpec().RescheduleTriggeredAt = at(3 * time.Minute) })}, names: []string{"web"},
			status: "web Successful; generation 1, finished after 1h0m0s", asked: map[string]time.Duration{"web": 3 * time.Minute},
		},
		"the binding's name is another template's": {
			objects: []client.Object{bindingOf("web", func(b workv1alpha2.Binding) { b.BindingSpec().Resource.APIVersion = "own.io/v1" })}, names: []string{"web"},
			status: "web Failed ReferencedBindingNotFound; generation 1, finished after 1h0m0s", asked: map[string]time.Duration{"web": 0},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := fleetOf(t, append(tc.objects, rebalancer(tc.names...))...)
			if _, err := f.reconcile(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.status, f.says()); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			got := map[string]time.Duration{}
			for name := range tc.asked {
				got[name] = f.asked(name)
			}
			if diff := cmp.Diff(tc.asked, got); diff != "" {
				t.Errorf("asked for at (-want +got):\n%s", diff)
			}
			f.writes = 0
			f.loop = New(f.Client, Options{Clock: f.clock})
			if _, err := f.reconcile(); err != nil || f.writes > 0 {
				t.Errorf("after a restart: %d writes, error %v", f.writes, err)
			}
		})
	}
}

// TestEdits: what is added later is asked for then, and what is served stays so.
func TestEdits(t *testing.T) {
	f := fleetOf(t, bindingOf("web"), bindingOf("api"), bindingOf("db"), rebalancer("web", "late"))
	step := func(change func(r *appsv1alpha1.WorkloadRebalancer)) string {
		if change != nil {
			f.edit(change)
		}
		if _, err := f.reconcile(); err != nil {
			t.Fatal(err)
		}
		f.clock.Step(time.Minute)
		return f.says()
	}
	got := []string{
		step(nil),
		step(func(r *appsv1alpha1.WorkloadRebalancer) { r.Spec.Workloads = append(r.Spec.Workloads, workload("api")) }),
		step(func(r *appsv1alpha1.WorkloadRebalancer) {
			r.Spec.Workloads = []appsv1alpha1.ObjectReference{workload("db")}
		}),
		step(func(r *appsv1alpha1.WorkloadRebalancer) { r.Spec.TTLSecondsAfterFinished = ptr.To(int32(3600)) }),
	}
	want := []string{
		"late Failed ReferencedBindingNotFound, web Successful; generation 1, finished after 1h0m0s",
		"api Successful, late Failed ReferencedBindingNotFound, web Successful; generation 2, finished after 1h1m0s",
		"api Successful, db Successful, web Successful; generation 3, finished after 1h2m0s",
		"api Successful, db Successful, web Successful; generation 4, finished after 1h2m0s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	asked := []time.Duration{f.asked("web"), f.asked("api"), f.asked("db")}
	if diff := cmp.Diff([]time.Duration{time.Minute, time.Hour + time.Minute, time.Hour + 2*time.Minute}, asked); diff != "" {
		t.Errorf("asked for at (-want +got):\n%s", diff)
	}
}

// TestFaults: what cannot be asked for holds up nothing, and is tried again.
func TestFaults(t *testing.T) {
	f := fleetOf(t, bindingOf("web"), bindingOf("api"), rebalancer("web", "api"))
	f.refuse = "api-deployment"
	_, err := f.reconcile()
	got := []any{err != nil, f.says()}
	f.refuse = ""
	_, err = f.reconcile()
	got = append(got, err != nil, f.says(), f.asked("api"))
	want := []any{
		true, "api , web Successful; generation 1, unfinished",
		false, "api Successful, web Successful; generation 1, finished after 1h0m0s", time.Minute,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("error, status; error, status, asked for at (-want +got):\n%s", diff)
	}
}

// TestOnce: an edit asks once for each workload, however often its status cannot
// be written.
func TestOnce(t *testing.T) {
	f := fleetOf(t, bindingOf("web"), bindingOf("api"), rebalancer("web"))
	if _, err := f.reconcile(); err != nil {
		t.Fatal(err)
	}
	f.edit(func(r *appsv1alpha1.WorkloadRebalancer) { r.Spec.Workloads = append(r.Spec.Workloads, workload("api")) })
	var got []any
	for _, f.mute = range []bool{true, true, false} {
		f.clock.Step(time.Minute)
		_, err := f.reconcile()
		got = append(got, err != nil, f.asked("api"))
	}
	got = append(got, f.says(), len(f.loop.asked))
	first := time.Hour + time.Minute
	want := []any{true, first, true, first, false, first, "api Successful, web Successful; generation 2, finished after 1h3m0s", 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("error, asked for at; three times; status, remembered (-want +got):\n%s", diff)
	}
}

// TestTimeToLiveInGit: a Kustomization would bring back what is deleted, and all would be asked for again.
func TestTimeToLiveInGit(t *testing.T) {
	r := rebalancer("web")
	r.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "fleet", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
	r.Spec.TTLSecondsAfterFinished = ptr.To(int32(60))
	f := fleetOf(t, bindingOf("web"), r)
	for range 2 {
		result, err := f.reconcile()
		if err != nil {
			t.Fatal(err)
		}
		const want = "web Successful; generation 1, finished after 1h0m0s, looks again after 0s"
		if got := fmt.Sprintf("%s, looks again after %s", f.says(), result.RequeueAfter); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		f.clock.Step(time.Hour)
	}
}

func TestTimeToLive(t *testing.T) {
	r := rebalancer("web")
	r.Spec.TTLSecondsAfterFinished = ptr.To(int32(60))
	f := fleetOf(t, bindingOf("web"), r)
	var got []string
	for _, pause := range []time.Duration{0, 20 * time.Second, 40 * time.Second} {
		f.clock.Step(pause)
		result, err := f.reconcile()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s, looks again after %s", f.says(), result.RequeueAfter))
	}
	want := []string{
		"web Successful; generation 1, finished after 1h0m0s, looks again after 1m0s",
		"web Successful; generation 1, finished after 1h0m0s, looks again after 40s",
		"gone, looks again after 0s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("over time (-want +got):\n%s", diff)
	}
}
