package execution

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler/execution/skiperrors"
	"github.com/flotilla-io/flotilla/reconciler/undelete"
)

// blockedBy returns the condition DeletionBlocked of a Work.
func (f *two) blockedBy(name string) string {
	f.t.Helper()
	c := meta.FindStatusCondition(f.work(name).Status.Conditions, workv1alpha1.WorkDeletionBlocked)
	if c == nil {
		return ""
	}
	return c.Reason + ": " + c.Message
}

// TestARemovalIsWaitedFor: a Work stays until its objects are gone, however often it is
// reconciled, and reports what keeps them.
func TestARemovalIsWaitedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		finalizers []string
		refuses    error
		asked      []string // the first two
		says       string
		event      []string
		later      bool // the event comes only once it has taken long
	}{
		"what nobody keeps goes with it": {asked: []string{"a applies uid-1", "removed uid-1"}},
		"a finalizer keeps it": {
			finalizers: []string{"example.com/a", "example.com/b"}, asked: []string{"a applies uid-1", "removed uid-1"},
			says: "Terminating: ConfigMap shop/settings is being deleted in the cluster, " +
				"kept by its finalizers: example.com/a, example.com/b",
			event: []string{"*v1alpha1.Work DeletionBlocked"}, later: true,
		},
		"the cluster refuses": {
			refuses: errors.New(`admission webhook "no.example.com" denied the request`), asked: []string{"a applies uid-1", "removed uid-1"},
			says:  `DeletionFailed: remove ConfigMap shop/settings: admission webhook "no.example.com" denied the request`,
			event: []string{"*v1alpha1.Work DeletionBlocked"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTwoOf(t, workNamed("a", "settings"))
			f.reconcile("a")
			f.yard.there.SetFinalizers(tc.finalizers)
			f.yard.refuses = tc.refuses
			if err := f.hub.Delete(t.Context(), f.work("a")); err != nil {
				t.Fatal(err)
			}
			f.reconcile("a")
			if tc.says == "" {
				if got := f.state("a"); got != "gone" {
					t.Errorf("the Work is %s", got)
				}
				f.asked(tc.asked...)
				return
			}
			if got := f.blockedBy("a"); got != "" {
				t.Errorf("says at once: %s", got)
			}
			for range triesForRemoval + 2 {
				f.reconcile("a")
			}
			if diff := cmp.Diff(tc.says, f.blockedBy("a")); diff != "" {
				t.Errorf("says in the end (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.asked, f.yard.asked[:2]); diff != "" || tc.refuses == nil && len(f.yard.asked) > 2 {
				t.Errorf("asked of the member %v (-want +got):\n%s", f.yard.asked, diff)
			}
			f.clock.SetTime(f.work("a").DeletionTimestamp.Add(30*time.Second - 1))
			f.reconcile("a")
			if early := len(f.events.reported) > 0; early == tc.later {
				t.Errorf("Events before it has taken long: %q", f.events.reported)
			}
			f.clock.SetTime(f.work("a").DeletionTimestamp.Add(30 * time.Second))
			f.reconcile("a", "a")
			if diff := cmp.Diff(tc.event, f.events.reported); diff != "" {
				t.Errorf("Events (-want +got):\n%s", diff)
			}
			f.yard.there, f.yard.refuses = nil, nil
			f.reconcile("a")
			if got := f.state("a"); got != "gone" {
				t.Errorf("the Work is %s once its object is gone", got)
			}
		})
	}
}

// TestWhatIsNotAskedForAnyMoreIsWaitedFor: a former object that is gone in a moment is no failure; one
// whose deletion is blocked is.
func TestWhatIsNotAskedForAnyMoreIsWaitedFor(t *testing.T) {
	f := newTwoOf(t, workNamed("a", "settings"))
	f.reconcile("a")
	f.yard.there.SetFinalizers([]string{"example.com/a"})
	f.change("a", func(w *workv1alpha1.Work) { w.Spec.Workload.Manifests = nil })
	f.reconcile("a")
	if got := f.applied("a"); got != "applied" || len(f.work("a").Status.ManifestStatuses) != 1 {
		t.Errorf("says at once: %s, %v", got, f.work("a").Status.ManifestStatuses)
	}
	for range triesForRemoval {
		f.reconcile("a")
	}
	want := "Failed to remove ConfigMap shop/settings, which is not asked for any more: ConfigMap shop/settings is being deleted in the cluster, " +
		"kept by its finalizers: example.com/a"
	if diff := cmp.Diff(want, f.applied("a")); diff != "" {
		t.Errorf("says in the end (-want +got):\n%s", diff)
	}
	f.yard.there = nil
	f.reconcile("a")
	if got := f.applied("a"); got != "applied" || len(f.work("a").Status.ManifestStatuses) != 0 {
		t.Errorf("says once it is gone: %s, %v", got, f.work("a").Status.ManifestStatuses)
	}
}

// leaves deletes a Work and notifies the loop.
func (f *two) leaves(name string) {
	f.t.Helper()
	was := f.work(name)
	if err := f.hub.Delete(f.t.Context(), was); err != nil {
		f.t.Fatal(err)
	}
	f.loop.workSeen(was, f.work(name))
}

// TestWhatAnotherAsksForIsNotRemoved: a Work that waits for an object gets it as it is,
// even if the loop sees first that the owner is being deleted, and no event of the other Work.
func TestWhatAnotherAsksForIsNotRemoved(t *testing.T) {
	for name, reads := range map[string][]string{
		"the other has waited":                {"a", "b"},
		"the other was not looked at as yet":  {"a"},
		"nobody was looked at since it began": {},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTwo(t)
			f.reconcile("a")
			if len(reads) == 0 {
				f.restart()
			}
			f.reconcile(reads...)
			f.leaves("a")
			f.reconcile("a")
			if got := f.state("a"); got != "gone" {
				t.Fatalf("the Work is %s", got)
			}
			f.loop.workGone(workNamed("a", "settings"))
			f.reconcile("b")
			f.asked("a applies uid-1", "b applies uid-1")
		})
	}
}

// TestASuccessorWaitsForWhatGoes: an object that is being deleted cannot be taken over. Its
// owner stays until it is gone, and the successor reports that it waits, and creates it then.
func TestASuccessorWaitsForWhatGoes(t *testing.T) {
	f := newTwo(t)
	f.reconcile("a")
	f.yard.there.SetFinalizers([]string{"example.com/a"})
	f.yard.there.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	f.reconcile("b")
	f.leaves("a")
	f.reconcile("a", "b")
	if got := [2]string{f.state("a"), f.applied("b")}; got != [2]string{"marked", ownedByA} {
		t.Errorf("while it goes: %q", got)
	}
	f.yard.there = nil
	f.reconcile("a")
	f.queued()
	f.loop.workGone(workNamed("a", "settings"))
	if got := f.queued(); got != "b" {
		t.Errorf("looked at once it is gone: %q", got)
	}
	f.reconcile("b")
	f.asked("a applies uid-1", "b applies uid-2")
}

// TestWhatIsServedInAnotherVersionIsRemoved: objects exist even if one of the versions of their kind is not served any
// more.
func TestWhatIsServedInAnotherVersionIsRemoved(t *testing.T) {
	f := newTwoOf(t, workNamed("a", "settings"))
	f.reconcile("a")
	f.yard.blind, f.yard.served = true, "v2"
	f.leaves("a")
	f.reconcile("a")
	f.asked("a applies uid-1", "removed uid-1")
	if got := f.state("a"); got != "gone" {
		t.Errorf("the Work is %s", got)
	}
}

// TestWhatIsWantedAgainStays: for the next Work, with the metadata that it has. The Work stays, too, and says so: what is wanted by then
// is for the control plane to say, which ends it.
func TestWhatIsWantedAgainStays(t *testing.T) {
	f := newTwoOf(t, workNamed("a", "settings"))
	f.reconcile("a")
	was := f.work("a")
	was.Annotations = map[string]string{workv1alpha2.WantedAgainAnnotation: "true"}
	if err := f.hub.Update(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	f.leaves("a")
	f.reconcile("a")
	f.asked("a applies uid-1")
	if work := f.work("a"); !undelete.Released(work) || undelete.Blocked(work) {
		t.Errorf("the Work: %v, %v", work.Finalizers, work.Status.Conditions)
	}
}

// TestWhatMayBeWantedAgainWaits: nothing is removed before it is known whether the next Work comes.
func TestWhatMayBeWantedAgainWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		then  []string
		stays bool
		asked []string
	}{
		"it is wanted":                 {[]string{workv1alpha2.WantedAgain}, true, []string{"a applies uid-1"}},
		"it is not":                    {[]string{""}, false, []string{"a applies uid-1", "removed uid-1"}},
		"it was, and is not after all": {[]string{workv1alpha2.WantedAgain, ""}, false, []string{"a applies uid-1", "removed uid-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTwoOf(t, workNamed("a", "settings"))
			says := func(value string) {
				w := f.work("a")
				if w.Annotations = nil; value != "" {
					w.Annotations = map[string]string{workv1alpha2.WantedAgainAnnotation: value}
				}
				if err := f.hub.Update(t.Context(), w); err != nil {
					t.Fatal(err)
				}
			}
			f.reconcile("a")
			says(workv1alpha2.WantedAgainUndecided)
			f.leaves("a")
			f.reconcile("a")
			f.asked("a applies uid-1")
			if f.state("a") == "gone" {
				t.Fatal("the Work did not wait")
			}
			for _, value := range tc.then {
				says(value)
				f.reconcile("a")
			}
			f.asked(tc.asked...)
			if got := f.state("a"); (got != "gone") != tc.stays {
				t.Errorf("the Work is %s", got)
			}
		})
	}
}

// TestARefusalKeepsNothingElse: objects that the cluster deletes are removed, even if it refuses to delete another
// object of the Work.
func TestARefusalKeepsNothingElse(t *testing.T) {
	work := testWork(manifestText)
	work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, work.Spec.Workload.Manifests[0])
	e := &edge{presence: members.Present, observed: ours(asIs), refuse: errors.New("denied")}
	w := testWorker(e, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	_, err := w.lifetime.deleteObjects(t.Context(), &state{key: workKey, work: work, cluster: &clusterv1alpha1.Cluster{}, member: e})
	if diff := cmp.Diff([]string{"delete web u", "delete web u"}, e.asked); diff != "" || err == nil {
		t.Errorf("%v; asked (-want +got):\n%s", err, diff)
	}
}

// TestWhatIsWantedAgainGoesWithItsCluster: in a cluster that is being unjoined there is no next Work.
func TestWhatIsWantedAgainGoesWithItsCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		leaves bool
		asked  []string
	}{
		"the cluster stays":  {},
		"the cluster leaves": {leaves: true, asked: []string{"delete web u"}},
	} {
		t.Run(name, func(t *testing.T) {
			work, cluster := testWork(manifestText), &clusterv1alpha1.Cluster{}
			work.Annotations = map[string]string{workv1alpha2.WantedAgainAnnotation: "true"}
			if tc.leaves {
				cluster.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			}
			e := &edge{presence: members.Present, observed: ours(asIs)}
			w := testWorker(e, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			s := &state{key: workKey, work: work, cluster: cluster, member: e}
			_, err := w.lifetime.deleteObjects(t.Context(), s)
			if recalled := s.stays != nil && skiperrors.IsRecalled(s.stays.why); recalled == tc.leaves || (err != nil) == tc.leaves {
				t.Errorf("recalled %t, error %v", recalled, err)
			}
			if diff := cmp.Diff(tc.asked, e.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// claimOf returns a Work whose template is a volume claim.
func claimOf(name, object string) *workv1alpha1.Work {
	w := workNamed(name, object)
	w.Labels = map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "b-1"}
	w.Spec.Workload.Manifests[0].Raw = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":%q,"namespace":"shop","annotations":{"resourcetemplate.karmada.io/uid":"t-1"}}}`, object)
	return w
}

// TestWhatHoldsDataStays: a claim is deleted with its Work only with the annotation that allows it; the Work waits a
// while for that, and reports once where the claim stays.
func TestWhatHoldsDataStays(t *testing.T) {
	say := func(key, value string) func(*workv1alpha1.Work) {
		return func(w *workv1alpha1.Work) { w.Annotations = map[string]string{key: value} }
	}
	events := []string{"*v1alpha1.Work ClaimKept", "*v1.PartialObjectMetadata ClaimKept"}
	for name, tc := range map[string]struct {
		change func(*workv1alpha1.Work)
		late   func(*workv1alpha1.Work) // while the Work waits
		waits  bool
		asked  []string
		event  []string
	}{
		"nothing says that it may go":       {waits: true, asked: []string{"a applies uid-1"}, event: events},
		"its template was deleted":          {change: say(workv1alpha2.TemplateGoneAnnotation, "t-1"), asked: []string{"a applies uid-1", "removed uid-1"}},
		"its template is deleted meanwhile": {late: say(workv1alpha2.TemplateGoneAnnotation, "t-1"), waits: true, asked: []string{"a applies uid-1", "removed uid-1"}},
		"somebody named it":                 {change: say(workv1alpha2.AllowCascadeAnnotation, "true"), asked: []string{"a applies uid-1", "removed uid-1"}},
		"the Work is a person's own":        {change: func(w *workv1alpha1.Work) { w.Labels = nil }, asked: []string{"a applies uid-1", "removed uid-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTwoOf(t, claimOf("a", "data"))
			f.reconcile("a")
			if tc.change != nil {
				f.change("a", tc.change)
			}
			if err := f.hub.Delete(t.Context(), f.work("a")); err != nil {
				t.Fatal(err)
			}
			f.clock.SetTime(f.work("a").DeletionTimestamp.Time)
			f.reconcile("a")
			if got := f.state("a"); (got != "gone") != tc.waits {
				t.Errorf("the Work is %s at once", got)
			}
			if tc.late != nil {
				f.change("a", tc.late)
			} else if tc.waits {
				f.clock.SetTime(f.work("a").DeletionTimestamp.Add(volumes.Grace))
			}
			if tc.waits {
				f.reconcile("a")
			}
			if got := f.state("a"); got != "gone" {
				t.Errorf("the Work is %s", got)
			}
			f.asked(tc.asked...)
			if diff := cmp.Diff(tc.event, f.events.reported); diff != "" {
				t.Errorf("Events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatHoldsDataStaysUnasked: a claim that no manifest names any more, as it was renamed, stays under its former
// name.
func TestWhatHoldsDataStaysUnasked(t *testing.T) {
	f := newTwoOf(t, claimOf("a", "data"))
	f.reconcile("a")
	f.change("a", func(w *workv1alpha1.Work) { w.Spec.Workload.Manifests = nil })
	f.reconcile("a", "a")
	f.asked("a applies uid-1")
	if got := f.applied("a"); got != "applied" || len(f.work("a").Status.ManifestStatuses) != 0 {
		t.Errorf("the Work says %s, %v", got, f.work("a").Status.ManifestStatuses)
	}
}

// TestWhatHoldsDataStaysInAClusterThatLeaves: without a wait, and unmanaged from then on.
func TestWhatHoldsDataStaysInAClusterThatLeaves(t *testing.T) {
	f := newTwoOf(t, claimOf("a", "data"))
	f.reconcile("a")
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}}
	if err := f.hub.Patch(t.Context(), cluster, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["f/f"]}}`))); err != nil {
		t.Fatal(err)
	}
	for _, obj := range []client.Object{cluster, f.work("a")} {
		if err := f.hub.Delete(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	f.reconcile("a")
	if got := f.state("a"); got != "gone" {
		t.Errorf("the Work is %s", got)
	}
	f.asked("a applies uid-1", "somebody patches")
}
