package execution

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

// blockedBy is what a Work says of why it does not go.
func (f *two) blockedBy(name string) string {
	f.t.Helper()
	c := meta.FindStatusCondition(f.work(name).Status.Conditions, workv1alpha1.WorkDeletionBlocked)
	if c == nil {
		return ""
	}
	return c.Reason + ": " + c.Message
}

// TestARemovalIsWaitedFor: a Work stays until what it has sent is gone, however often it is
// looked at, and says what keeps it.
func TestARemovalIsWaitedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		finalizers []string
		refuses    error
		told       []string // the first two
		says       string
		event      []string
	}{
		"what nobody holds goes with it": {told: []string{"a applies uid-1", "removed uid-1"}},
		"a finalizer holds it": {
			finalizers: []string{"example.com/a", "example.com/b"}, told: []string{"a applies uid-1", "removed uid-1"},
			says: "Terminating: ConfigMap shop/settings is being deleted in the cluster, " +
				"kept by its finalizers: example.com/a, example.com/b",
			event: []string{"*v1alpha1.Work DeletionBlocked"},
		},
		"the cluster refuses": {
			refuses: errors.New(`admission webhook "no.example.com" denied the request`), told: []string{"a applies uid-1", "removed uid-1"},
			says:  `DeletionFailed: remove ConfigMap shop/settings: admission webhook "no.example.com" denied the request`,
			event: []string{"*v1alpha1.Work DeletionBlocked"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTwoOf(t, workNamed("a", "settings"))
			f.look("a")
			f.yard.there.SetFinalizers(tc.finalizers)
			f.yard.refuses = tc.refuses
			if err := f.hub.Delete(t.Context(), f.work("a")); err != nil {
				t.Fatal(err)
			}
			f.look("a")
			if tc.says == "" {
				if got := f.state("a"); got != "gone" {
					t.Errorf("the Work is %s", got)
				}
				f.told(tc.told...)
				return
			}
			if got := f.blockedBy("a"); got != "" {
				t.Errorf("says at once: %s", got)
			}
			for range triesForRemoval + 2 {
				f.look("a")
			}
			if diff := cmp.Diff(tc.says, f.blockedBy("a")); diff != "" {
				t.Errorf("says in the end (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.told, f.yard.told[:2]); diff != "" || tc.refuses == nil && len(f.yard.told) > 2 {
				t.Errorf("told the member %v (-want +got):\n%s", f.yard.told, diff)
			}
			if diff := cmp.Diff(tc.event, slices.Compact(f.lane.recorder.(*events).told)); diff != "" {
				t.Errorf("Events (-want +got):\n%s", diff)
			}
			f.yard.there, f.yard.refuses = nil, nil
			f.look("a")
			if got := f.state("a"); got != "gone" {
				t.Errorf("the Work is %s once its object is gone", got)
			}
		})
	}
}

// TestWhatIsNotAskedForAnyMoreIsWaitedFor: an object that goes in a moment is no failure, one
// that somebody holds is.
func TestWhatIsNotAskedForAnyMoreIsWaitedFor(t *testing.T) {
	f := newTwoOf(t, workNamed("a", "settings"))
	f.look("a")
	f.yard.there.SetFinalizers([]string{"example.com/a"})
	f.change("a", func(w *workv1alpha1.Work) { w.Spec.Workload.Manifests = nil })
	f.look("a")
	if got := f.applied("a"); got != "applied" || len(f.work("a").Status.ManifestStatuses) != 1 {
		t.Errorf("says at once: %s, %v", got, f.work("a").Status.ManifestStatuses)
	}
	for range triesForRemoval {
		f.look("a")
	}
	want := "Failed to remove ConfigMap shop/settings, which is not asked for any more: ConfigMap shop/settings is being deleted in the cluster, " +
		"kept by its finalizers: example.com/a"
	if diff := cmp.Diff(want, f.applied("a")); diff != "" {
		t.Errorf("says in the end (-want +got):\n%s", diff)
	}
	f.yard.there = nil
	f.look("a")
	if got := f.applied("a"); got != "applied" || len(f.work("a").Status.ManifestStatuses) != 0 {
		t.Errorf("says once it is gone: %s, %v", got, f.work("a").Status.ManifestStatuses)
	}
}
