package aggregated

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/yaml"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

const manifest = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"b":"2","a":"1"}}`

func workStrategy(t testing.TB, d *definition) strategy[*workv1alpha1.Work] {
	t.Helper()
	return strategy[*workv1alpha1.Work]{ObjectTyper: newScheme(), kind: works(d), newID: func() string { return "new" }}
}

// stored is a Work as it is after its creation.
func stored(t testing.TB, s strategy[*workv1alpha1.Work]) *workv1alpha1.Work {
	t.Helper()
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Name: "w", Namespace: "karmada-es-eu"}}
	w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}}
	w.Status.Conditions = []metav1.Condition{{Type: "Applied"}}
	s.PrepareForCreate(t.Context(), w)
	if errs := s.Validate(t.Context(), w); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return w
}

func TestCreate(t *testing.T) {
	s := workStrategy(t, definitionOf(t, "works.work.karmada.io"))
	w := stored(t, s)
	type outcome struct {
		Generation int64
		Labels     map[string]string
		Conditions int
	}
	want := outcome{Generation: 1, Labels: map[string]string{"work.karmada.io/permanent-id": "new"}}
	if diff := cmp.Diff(want, outcome{w.Generation, w.Labels, len(w.Status.Conditions)}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := string(w.Spec.Workload.Manifests[0].Raw); !strings.Contains(got, `"work.karmada.io/permanent-id":"new"`) {
		t.Errorf("the manifest does not carry the id: %s", got)
	}
	bad := w.DeepCopy()
	bad.Name = "Not_A_Name"
	if errs := s.Validate(t.Context(), bad); len(errs) != 1 || errs[0].Field != "metadata.name" {
		t.Errorf("errors %v, want one about the name", errs)
	}
}

func TestManagedFieldsAreKeptForThoseWhoApply(t *testing.T) {
	s := workStrategy(t, definitionOf(t, "works.work.karmada.io"))
	for operation, want := range map[metav1.ManagedFieldsOperationType]int{metav1.ManagedFieldsOperationUpdate: 0, metav1.ManagedFieldsOperationApply: 1} {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", Operation: operation}}}}
		s.PrepareForCreate(t.Context(), w)
		if got := len(w.ManagedFields); got != want {
			t.Errorf("%s: %d entries, want %d", operation, got, want)
		}
	}
}

func TestUpdate(t *testing.T) {
	s := workStrategy(t, definitionOf(t, "works.work.karmada.io"))
	old := stored(t, s)
	old.Status.Conditions = []metav1.Condition{{Type: "Applied"}}
	cases := map[string]struct {
		change func(w *workv1alpha1.Work)
		want   int64
	}{
		"nothing":               {func(*workv1alpha1.Work) {}, 1},
		"a label":               {func(w *workv1alpha1.Work) { w.Labels["a"] = "b" }, 1},
		"a forgotten id":        {func(w *workv1alpha1.Work) { w.Labels = nil }, 1},
		"the status":            {func(w *workv1alpha1.Work) { w.Status = workv1alpha1.WorkStatus{} }, 1},
		"the generation":        {func(w *workv1alpha1.Work) { w.Generation = 9 }, 1},
		"the order of the JSON": {func(w *workv1alpha1.Work) { w.Spec.Workload.Manifests[0].Raw = reordered(t, w) }, 1},
		"a manifest": {func(w *workv1alpha1.Work) {
			w.Spec.Workload.Manifests[0].Raw = []byte(strings.Replace(manifest, "2", "3", 1))
		}, 2},
		"one more manifest": {func(w *workv1alpha1.Work) {
			w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, *w.Spec.Workload.Manifests[0].DeepCopy())
		}, 2},
		"a switch": {func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = new(bool) }, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := old.DeepCopy()
			tc.change(w)
			s.PrepareForUpdate(t.Context(), w, old)
			if errs := s.ValidateUpdate(t.Context(), w, old); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
			if w.Generation != tc.want {
				t.Errorf("generation %d, want %d", w.Generation, tc.want)
			}
			if diff := cmp.Diff(old.Status, w.Status); diff != "" {
				t.Errorf("the status changed:\n%s", diff)
			}
			if w.Labels["work.karmada.io/permanent-id"] != "new" {
				t.Errorf("labels %v", w.Labels)
			}
		})
	}
}

// reordered is the first manifest with its keys in another order.
func reordered(t *testing.T, w *workv1alpha1.Work) []byte {
	t.Helper()
	text := string(w.Spec.Workload.Manifests[0].Raw)
	moved := strings.TrimSuffix(strings.TrimSpace(strings.Replace(text, `"apiVersion":"v1",`, "", 1)), "}") + `,"apiVersion":"v1"}`
	if moved == text || yaml.Unmarshal([]byte(moved), &map[string]any{}) != nil {
		t.Fatalf("%s is not %s in another order", moved, text)
	}
	return []byte(moved)
}

func TestUpdateOfTheStatus(t *testing.T) {
	s := statusStrategy[*workv1alpha1.Work]{workStrategy(t, definitionOf(t, "works.work.karmada.io"))}
	old := stored(t, s.strategy)
	w := old.DeepCopy()
	w.Labels = map[string]string{"only": "the spec's writer changes these"}
	w.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", Operation: metav1.ManagedFieldsOperationApply}}
	w.Spec = workv1alpha1.WorkSpec{}
	w.Status.Conditions = []metav1.Condition{{Type: "Applied", Status: "True", Reason: "Applied", LastTransitionTime: metav1.NewTime(time.Now())}}
	want := old.DeepCopy()
	want.Status, want.ManagedFields = *w.Status.DeepCopy(), w.ManagedFields
	s.PrepareForUpdate(t.Context(), w, old)
	if diff := cmp.Diff(want, w); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if errs := s.ValidateUpdate(t.Context(), w, old); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
	w.Status.Conditions[0].Reason = "not a reason"
	for name, who := range map[string]struct {
		user user.Info
		want int
	}{
		"nobody who is known":            {nil, 1},
		"an agent":                       {&user.DefaultInfo{Name: "system:karmada:agent:eu", Groups: []string{"system:authenticated"}}, 1},
		"an administrator":               {&user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}, 1},
		"a loop, which knows what it is": {&user.DefaultInfo{Name: "system:apiserver"}, 0},
	} {
		ctx := t.Context()
		if who.user != nil {
			ctx = genericapirequest.WithUser(ctx, who.user)
		}
		errs := s.ValidateUpdate(ctx, w, old)
		if len(errs) != who.want || who.want > 0 && errs[0].Field != "status.conditions[0].reason" {
			t.Errorf("%s: errors %v, want %d about the reason", name, errs, who.want)
		}
	}
}

// TestWhatAPatchOfAStatusStartsFrom checks that a patch of the status gets the object without
// its spec, which the strategy restores, or the whole object if it has managed fields.
func TestWhatAPatchOfAStatusStartsFrom(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", ResourceVersion: "7", Generation: 3, Labels: map[string]string{"a": "b"}}
	work := &workv1alpha1.Work{ObjectMeta: meta}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}}
	work.Status.Conditions = []metav1.Condition{{Type: "Applied"}}
	binding := &workv1alpha2.ResourceBinding{ObjectMeta: meta}
	binding.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "eu", Replicas: 2}}
	binding.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "eu"}}
	owned := work.DeepCopy()
	owned.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", Operation: metav1.ManagedFieldsOperationApply}}
	ofWork := works(definitionOf(t, "works.work.karmada.io"))
	ofBinding := resourceBindings(definitionOf(t, "resourcebindings.work.karmada.io"))
	for name, tc := range map[string]struct {
		got, want runtime.Object
	}{
		"a Work":              {ofWork.lighten()(work), &workv1alpha1.Work{ObjectMeta: meta, Status: work.Status}},
		"a binding":           {ofBinding.lighten()(binding), &workv1alpha2.ResourceBinding{ObjectMeta: meta, Status: binding.Status}},
		"one that is applied": {ofWork.lighten()(owned), owned.DeepCopy()},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(manifest, string(work.Spec.Workload.Manifests[0].Raw)); diff != "" || len(binding.Spec.Clusters) != 1 {
		t.Errorf("what is stored was changed: %s, %v", diff, binding.Spec.Clusters)
	}
}

// BenchmarkCreateWork measures the strategy's share of the most frequent write.
func BenchmarkCreateWork(b *testing.B) {
	s := workStrategy(b, definitionOf(b, "works.work.karmada.io"))
	w := stored(b, s)
	for b.Loop() {
		next := w.DeepCopy()
		s.PrepareForCreate(b.Context(), next)
		if errs := s.Validate(b.Context(), next); len(errs) > 0 {
			b.Fatal(errs.ToAggregate())
		}
	}
}
