package execution

import (
	"context"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/undelete"
)

// moved returns a fleet in which "settings" has left eu-1 for us-1, and is to be removed in eu-1. Us-1 is gone.
func moved(t *testing.T) *two {
	const id = "11111111-1111-1111-1111-111111111111"
	a := workNamed("a", "settings")
	a.Labels = map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: id}
	a.Annotations = map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotationKey: "shop", workv1alpha2.ResourceBindingNameAnnotationKey: "settings-configmap"}
	f := newTwoOf(t, a, &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings-configmap", Labels: a.Labels},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings"},
			Clusters: []workv1alpha2.TargetCluster{{Name: "us-1"}},
		},
	})
	f.reconcile("a")
	if err := f.hub.Status().Update(t.Context(), func() *workv1alpha1.Work {
		w := f.work("a")
		w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: workv1alpha1.ResourceHealthy}}
		return w
	}()); err != nil {
		t.Fatal(err)
	}
	if err := f.hub.Delete(t.Context(), f.work("a")); err != nil {
		t.Fatal(err)
	}
	return f
}

// interrupted returns a fleet as moved does, and eu-1 was lost before it was removed there.
func interrupted(t *testing.T) *two {
	f := moved(t)
	eu := &clusterv1alpha1.Cluster{}
	if err := f.hub.Get(t.Context(), client.ObjectKey{Name: "eu-1"}, eu); err != nil {
		t.Fatal(err)
	}
	meta.SetStatusCondition(&eu.Status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ClusterAnswersAgainReason,
		LastTransitionTime: metav1.NewTime(f.work("a").DeletionTimestamp.Add(time.Minute)),
	})
	if err := f.hub.Update(t.Context(), eu); err != nil {
		t.Fatal(err)
	}
	return f
}

// runsInUS has the hub know us-1, which is ready, and that the copy there is healthy.
func (f *two) runsInUS() {
	f.t.Helper()
	us := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "us-1"}}
	us.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
	there := f.work("a")
	copied := workNamed(workv1alpha2.WorkName("ConfigMap", "settings", "shop"), "settings")
	copied.Namespace, copied.Labels, copied.Annotations = workv1alpha2.ExecutionNamespace("us-1"), there.Labels, there.Annotations
	copied.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
	copied.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: workv1alpha1.ResourceHealthy}}
	for _, obj := range []client.Object{us, copied} {
		if err := f.hub.Create(f.t.Context(), obj); err != nil {
			f.t.Fatal(err)
		}
	}
}

// removed reports whether the member was told to delete the object.
func (f *two) removed() bool {
	return slices.ContainsFunc(f.yard.asked, func(what string) bool { return what == "removed uid-1" })
}

// TestARemovalThatALossInterruptedIsJudgedAgain: the copy stays while there is none elsewhere, says so, and goes once there is one.
func TestARemovalThatALossInterruptedIsJudgedAgain(t *testing.T) {
	f := interrupted(t)
	f.reconcile("a", "a")
	const want = "LastCopy: ConfigMap shop/settings is healthy in none of the clusters that it is placed in (us-1): this cluster or the control plane was away before the copy here was removed, which stays until one is"
	if diff := cmp.Diff(want, f.blockedBy("a")); diff != "" || f.removed() {
		t.Errorf("removed: %t; says (-want +got):\n%s", f.removed(), diff)
	}
	if diff := cmp.Diff([]string{"*v1alpha1.Work DeletionBlocked"}, f.events.reported); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
	f.runsInUS()
	f.reconcile("a")
	if !f.removed() || f.state("a") != "gone" {
		t.Errorf("once it is healthy elsewhere: removed: %t, the Work is %s", f.removed(), f.state("a"))
	}
}

// TestTheLastCopyThatIsWantedAgainStays: it is placed in the cluster again, and its new Work takes the object over.
func TestTheLastCopyThatIsWantedAgainStays(t *testing.T) {
	f := interrupted(t)
	f.reconcile("a")
	f.change("a", func(w *workv1alpha1.Work) {
		w.Annotations[workv1alpha2.WantedAgainAnnotation] = "true"
	})
	f.reconcile("a")
	if f.removed() || !undelete.Released(f.work("a")) {
		t.Errorf("removed: %t, the Work is %s", f.removed(), f.state("a"))
	}
	f.change("a", func(w *workv1alpha1.Work) { delete(w.Annotations, workv1alpha2.WantedAgainAnnotation) })
	f.reconcile("a")
	if f.removed() || f.state("a") == "gone" {
		t.Errorf("once it is not wanted there any more: removed: %t, the Work is %s", f.removed(), f.state("a"))
	}
}

// TestARemovalThatMissedItsClusterAsksForTheOtherCopy: a removal that could not be done at once is done when the other cluster has
// answered since, and nothing is written meanwhile; one that can be asks nobody.
func TestARemovalThatMissedItsClusterAsksForTheOtherCopy(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(f *two)
		want    []string
	}{
		"the cluster answers all the time": {func(*two) {}, []string{"gone"}},
		"the control plane was started meanwhile": {func(f *two) {
			f.clock.SetTime(f.work("a").DeletionTimestamp.Add(time.Minute))
			f.loop.Proven("eu-1")
		}, []string{"asked us-1", "stays", "asked us-1", "gone"}},
		"it was out of reach for a moment": {func(f *two) {
			f.parts.connected = func(string) (member, bool) { return nil, false }
			f.restart()
			f.reconcile("a")
			f.worker.reader.connected = func(string) (member, bool) { return f.yard, true }
		}, []string{"asked us-1", "stays", "asked us-1", "gone"}},
		"it did not answer the removal": {func(f *two) {
			f.yard.refuses = &url.Error{Op: "Delete", URL: "https://eu-1", Err: context.DeadlineExceeded}
			f.reconcile("a")
			f.yard.refuses = nil
		}, []string{"asked us-1", "stays", "asked us-1", "gone"}},
		"the control plane was stopped meanwhile": {func(f *two) {
			woke := f.work("a").DeletionTimestamp.Add(time.Minute)
			f.clock.SetTime(woke)
			f.parts.woke = func() time.Time { return woke }
			f.restart()
		}, []string{"asked us-1", "stays", "asked us-1", "gone"}},
		"it was stopped after it had judged": {func(f *two) {
			since, reads := f.work("a").DeletionTimestamp.Time, 0
			f.clock.SetTime(since)
			f.parts.woke = func() time.Time {
				if reads++; reads == 1 {
					return time.Time{}
				}
				f.clock.SetTime(since.Add(time.Minute))
				return since.Add(time.Minute)
			}
			f.restart()
		}, []string{"stays", "asked us-1", "gone"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t)
			var got []string
			there := false
			f.parts.opts.Answers = func(cluster string, _ time.Time) (time.Time, bool, time.Duration) {
				got = append(got, "asked "+cluster)
				return time.Unix(-60, 0), there, 300 * time.Millisecond
			}
			f.runsInUS()
			f.loop.Proven("eu-1")
			f.restart()
			tc.happens(f)
			status := f.work("a").Status
			for _, there = range []bool{false, true} {
				if f.reconcile("a"); f.removed() && f.state("a") == "gone" {
					got = append(got, "gone")
					break
				}
				got = append(got, "stays")
				if diff := cmp.Diff(status, f.work("a").Status); diff != "" {
					t.Errorf("written (-was +is):\n%s", diff)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
