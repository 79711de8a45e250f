package execution

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// bound creates the binding of a Work, with the ID in the Work or another one.
func (f *two) bound(name, id string) *workv1alpha2.ResourceBinding {
	f.t.Helper()
	w := f.work(name)
	w.Labels = map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: name}
	w.Annotations = map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotationKey: "shop", workv1alpha2.ResourceBindingNameAnnotationKey: name}
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: id}, Finalizers: []string{workv1alpha2.BindingControllerFinalizer},
	}}
	for _, err := range []error{f.hub.Update(f.t.Context(), w), f.hub.Create(f.t.Context(), b)} {
		if err != nil {
			f.t.Fatal(err)
		}
	}
	return b
}

// state returns what has become of a Work on an API server without Flotilla's deletion in one write.
func (f *two) state(name string) string {
	f.t.Helper()
	work := &workv1alpha1.Work{}
	switch err := f.hub.Get(f.t.Context(), key(name), work); {
	case apierrors.IsNotFound(err):
		return "gone"
	case err != nil:
		f.t.Fatal(err)
	case !work.DeletionTimestamp.IsZero():
		return "marked"
	}
	return "there"
}

// TestWhoseBindingGoes: a Work ends with its binding, and its objects are removed, except those that
// another Work has a manifest for.
func TestWhoseBindingGoes(t *testing.T) {
	for name, tc := range map[string]struct {
		id     string // of a's binding
		others string // a finalizer on a
		goes   []string
		asked  []string
		state  [2]string // of a, at once and after another pass
	}{
		"alone: the other one gets the object":     {id: "a", goes: []string{"a"}, asked: []string{"a applies uid-1"}, state: [2]string{"marked", "gone"}},
		"together with the other: the object goes": {id: "a", goes: []string{"a", "b"}, asked: []string{"a applies uid-1", "removed uid-1"}, state: [2]string{"marked", "gone"}},
		"nobody's: all stays":                      {id: "a", asked: []string{"a applies uid-1"}, state: [2]string{"there", "there"}},
		"another binding of the name":              {id: "another", goes: []string{"a", "b"}, asked: []string{"a applies uid-1"}, state: [2]string{"there", "there"}},
		"while somebody else keeps the Work":       {id: "a", others: "example.com/x", goes: []string{"a", "b"}, asked: []string{"a applies uid-1"}, state: [2]string{"there", "there"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTwo(t)
			f.reconcile("a", "b")
			of := map[string]*workv1alpha2.ResourceBinding{"a": f.bound("a", tc.id), "b": f.bound("b", "b")}
			if tc.others != "" {
				w := f.work("a")
				w.Finalizers = append(w.Finalizers, tc.others)
				if err := f.hub.Update(t.Context(), w); err != nil {
					t.Fatal(err)
				}
			}
			for _, gone := range tc.goes {
				if err := f.hub.Delete(t.Context(), of[gone]); err != nil {
					t.Fatal(err)
				}
			}
			f.reconcile("a")
			got := [2]string{f.state("a")}
			f.reconcile("a")
			got[1] = f.state("a")
			if diff := cmp.Diff(tc.state, got); diff != "" {
				t.Errorf("the Work (-want +got):\n%s", diff)
			}
			f.asked(tc.asked...)
		})
	}
}

// TestWhoseBindingHasLeft: a Work ends with the move off its cluster, if its binding names it and is not placed there again.
func TestWhoseBindingHasLeft(t *testing.T) {
	here, ok := workv1alpha2.ClusterOfExecutionNamespace(key("a").Namespace)
	if !ok {
		t.Fatal(key("a"))
	}
	for name, tc := range map[string]struct {
		in     string
		beside types.UID
		tasks  []workv1alpha2.GracefulEvictionTask
		want   [2]string
	}{
		"it is named":                          {in: "elsewhere", beside: "uid-of-a", want: [2]string{"marked", "gone"}},
		"another one is":                       {in: "elsewhere", beside: "uid-of-b", want: [2]string{"there", "there"}},
		"it is placed there again":             {in: here, beside: "uid-of-a", want: [2]string{"there", "there"}},
		"it leaves once more, and has to wait": {in: "elsewhere", beside: "uid-of-a", tasks: []workv1alpha2.GracefulEvictionTask{{FromCluster: here, Producer: "x", Reason: "x"}}, want: [2]string{"there", "there"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTwo(t)
			f.reconcile("a", "b")
			f.bound("b", "b")
			b := f.bound("a", "a")
			w := f.work("a")
			w.UID = "uid-of-a"
			if err := f.hub.Update(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			b.Spec.Clusters, b.Spec.GracefulEvictionTasks = []workv1alpha2.TargetCluster{{Name: tc.in}}, tc.tasks
			ended := metav1.Now()
			b.Annotations = placement.Decision{Record: placement.Record{
				Reason: workv1alpha2.BindingReasonSuccess, LastMove: &eviction.Move{From: []string{here}, To: []string{"elsewhere"}, Ended: &ended, Beside: []types.UID{tc.beside}},
			}}.Annotations()
			if err := f.hub.Update(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			var got [2]string
			for i := range got {
				f.reconcile("a")
				got[i] = f.state("a")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the Work (-want +got):\n%s", diff)
			}
		})
	}
}
