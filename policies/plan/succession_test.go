package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// work has a manifest for each of the values, which say its name.
func work(name string, values ...string) *workv1alpha1.Work {
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-a", Name: name, Labels: map[string]string{workv1alpha2.WorkPermanentIDLabel: "id"}, Generation: 1,
	}}
	for _, value := range values {
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, workv1alpha1.Manifest{RawExtension: runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"work.karmada.io/name":"` + name + `"}},"data":{"a":"` + value + `"}}`),
		}})
	}
	return w
}

// TestSucceeds: a Work takes the place of another one of the same permanent id, in the
// same cluster, and of another name.
func TestSucceeds(t *testing.T) {
	cases := map[string]struct {
		edit func(work, former *workv1alpha1.Work)
		want bool
	}{
		"another name":                   {func(_, _ *workv1alpha1.Work) {}, true},
		"the same name":                  {func(w, former *workv1alpha1.Work) { former.Name = w.Name }, false},
		"another id":                     {func(_, former *workv1alpha1.Work) { former.Labels[workv1alpha2.WorkPermanentIDLabel] = "x" }, false},
		"another cluster":                {func(_, former *workv1alpha1.Work) { former.Namespace = "karmada-es-b" }, false},
		"neither has an id":              {func(w, former *workv1alpha1.Work) { w.Labels, former.Labels = nil, nil }, false},
		"only one has an id":             {func(w, _ *workv1alpha1.Work) { w.Labels = nil }, false},
		"what they carry does not count": {func(w, _ *workv1alpha1.Work) { w.Spec.Workload.Manifests = nil }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now, former := work("new", "x"), work("old", "x")
			tc.edit(now, former)
			if got := plan.Succeeds(now, former); got != tc.want {
				t.Errorf("succeeds = %t, want %t", got, tc.want)
			}
		})
	}
}

// TestContinued: a Work that stands keeps its permanent id, also in what it has in its member.
func TestContinued(t *testing.T) {
	planned, current := work("web", "x"), work("web", "y")
	if got := plan.Continued(planned, current); got != planned {
		t.Error("it is another one although the id is the same")
	}
	labelled := &unstructured.Unstructured{}
	if err := labelled.UnmarshalJSON(planned.Spec.Workload.Manifests[0].Raw); err != nil {
		t.Fatal(err)
	}
	labelled.SetLabels(map[string]string{workv1alpha2.WorkPermanentIDLabel: "id", "a": "b"})
	encoded, err := plan.Encode(labelled)
	if err != nil {
		t.Fatal(err)
	}
	planned.Spec.Workload.Manifests[0] = encoded
	current.Labels[workv1alpha2.WorkPermanentIDLabel] = "of another control plane"
	got := plan.Continued(planned, current)
	if err := labelled.UnmarshalJSON(got.Spec.Workload.Manifests[0].Raw); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{workv1alpha2.WorkPermanentIDLabel: "of another control plane", "a": "b"}
	if diff := cmp.Diff(want, labelled.GetLabels()); diff != "" || got.Labels[workv1alpha2.WorkPermanentIDLabel] != want[workv1alpha2.WorkPermanentIDLabel] {
		t.Errorf("the Work has %v; its manifest (-want +got):\n%s", got.Labels, diff)
	}
	if planned.Labels[workv1alpha2.WorkPermanentIDLabel] != "id" {
		t.Error("the plan was changed")
	}
	delete(current.Labels, workv1alpha2.WorkPermanentIDLabel)
	if got := plan.Continued(planned, current); got != planned {
		t.Error("it is another one although there was no id")
	}
}

// TestInherited: a Work begins with what is known of the one whose place it takes; what
// that one applied counts where nothing but the name of the Work is another.
func TestInherited(t *testing.T) {
	hash := func(raw []byte) string { return "hash of " + string(raw) }
	condition := func(kind string, generation int64) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, ObservedGeneration: generation}
	}
	applied := func(generation int64) metav1.Condition { return condition(workv1alpha1.WorkApplied, generation) }
	healthy := func(generation int64) metav1.Condition { return condition("Healthy", generation) }
	record := func(w *workv1alpha1.Work, i int) workv1alpha1.AppliedHash {
		return workv1alpha1.AppliedHash{Ordinal: i, Desired: hash(w.Spec.Workload.Manifests[i].Raw), Observed: "o"}
	}
	broken := func(name string) *workv1alpha1.Work {
		w := work(name, "x")
		w.Spec.Workload.Manifests[0].Raw = []byte(`{`)
		return w
	}
	now, former := work("new", "x", "y"), work("old", "x", "y")
	now.Generation, former.Generation = 7, 3
	changed := work("new", "x", "z")
	stale := workv1alpha1.AppliedHash{Ordinal: 0, Desired: "of another version", Observed: "o"}
	cases := map[string]struct {
		work, former *workv1alpha1.Work
		was, want    workv1alpha1.WorkStatus
	}{
		"nothing but the name is another": {
			work: now, former: former,
			was:  workv1alpha1.WorkStatus{Conditions: []metav1.Condition{applied(3), healthy(2)}, Applied: []workv1alpha1.AppliedHash{record(former, 0), record(former, 1)}},
			want: workv1alpha1.WorkStatus{Conditions: []metav1.Condition{applied(7), healthy(7)}, Applied: []workv1alpha1.AppliedHash{record(now, 0), record(now, 1)}},
		},
		"a condition that does not say of which version is of the latest": {
			work: now, former: former,
			was: workv1alpha1.WorkStatus{Conditions: []metav1.Condition{applied(0)}}, want: workv1alpha1.WorkStatus{Conditions: []metav1.Condition{applied(7)}},
		},
		"an earlier version was applied": {
			work: now, former: former,
			was:  workv1alpha1.WorkStatus{Conditions: []metav1.Condition{applied(2), healthy(3)}, Applied: []workv1alpha1.AppliedHash{stale}},
			want: workv1alpha1.WorkStatus{Conditions: []metav1.Condition{healthy(7)}, Applied: []workv1alpha1.AppliedHash{stale}},
		},
		"one manifest is another": {
			work: changed, former: former,
			was:  workv1alpha1.WorkStatus{Conditions: []metav1.Condition{applied(3)}, Applied: []workv1alpha1.AppliedHash{record(former, 0), record(former, 1)}},
			want: workv1alpha1.WorkStatus{Conditions: []metav1.Condition{}, Applied: []workv1alpha1.AppliedHash{record(changed, 0), record(former, 1)}},
		},
		"there is one more": {
			work: now, former: work("old", "x"),
			was: workv1alpha1.WorkStatus{Conditions: []metav1.Condition{applied(1)}}, want: workv1alpha1.WorkStatus{Conditions: []metav1.Condition{}},
		},
		"there is one less": {
			work: work("new", "x"), former: former,
			was: workv1alpha1.WorkStatus{Conditions: []metav1.Condition{applied(3)}}, want: workv1alpha1.WorkStatus{Conditions: []metav1.Condition{}},
		},
		"what cannot be read is another": {
			work: broken("new"), former: broken("old"),
			was: workv1alpha1.WorkStatus{Conditions: []metav1.Condition{applied(1)}}, want: workv1alpha1.WorkStatus{Conditions: []metav1.Condition{}},
		},
		"nothing is known": {work: now, former: former},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			former := tc.former.DeepCopy()
			former.Status = tc.was
			before := former.DeepCopy()
			if diff := cmp.Diff(&tc.want, plan.Inherited(tc.work, former, hash)); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, former); diff != "" {
				t.Errorf("the former Work was changed (-want +got):\n%s", diff)
			}
		})
	}
}
