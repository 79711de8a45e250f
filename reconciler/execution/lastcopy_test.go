package execution

import (
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
)

// interrupted returns a fleet in which "settings" has left eu-1 for us-1, and eu-1 was lost before it was removed there. Us-1 is gone.
func interrupted(t *testing.T) *two {
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
	f.look("a")
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

// removed reports whether the member was told to delete the object.
func (f *two) removed() bool {
	return slices.ContainsFunc(f.yard.asked, func(what string) bool { return what == "removed uid-1" })
}

// TestARemovalThatALossInterruptedIsJudgedAgain: the copy stays while there is none elsewhere, says so, and goes once there is one.
func TestARemovalThatALossInterruptedIsJudgedAgain(t *testing.T) {
	f := interrupted(t)
	f.look("a", "a")
	const want = "LastCopy: ConfigMap shop/settings is healthy in none of the clusters that it is placed in (us-1): this cluster was lost before the copy here was removed, and keeps it until one is"
	if diff := cmp.Diff(want, f.blockedBy("a")); diff != "" || f.removed() {
		t.Errorf("removed: %t; says (-want +got):\n%s", f.removed(), diff)
	}
	if diff := cmp.Diff([]string{"*v1alpha1.Work DeletionBlocked"}, f.recorder.reported); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
	us := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "us-1"}}
	us.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
	there := f.work("a")
	copied := workNamed(workv1alpha2.WorkName("ConfigMap", "settings", "shop"), "settings")
	copied.Namespace, copied.Labels, copied.Annotations = workv1alpha2.ExecutionNamespace("us-1"), there.Labels, there.Annotations
	copied.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
	copied.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: workv1alpha1.ResourceHealthy}}
	for _, obj := range []client.Object{us, copied} {
		if err := f.hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	f.look("a")
	if !f.removed() || f.state("a") != "gone" {
		t.Errorf("once it is healthy elsewhere: removed: %t, the Work is %s", f.removed(), f.state("a"))
	}
}

// TestTheLastCopyThatIsWantedAgainStays: it is placed in the cluster again, and its new Work takes the object over.
func TestTheLastCopyThatIsWantedAgainStays(t *testing.T) {
	f := interrupted(t)
	f.look("a")
	f.change("a", func(w *workv1alpha1.Work) {
		w.Annotations[workv1alpha2.WantedAgainAnnotation] = "true"
	})
	f.look("a")
	if f.removed() || f.state("a") != "gone" {
		t.Errorf("removed: %t, the Work is %s", f.removed(), f.state("a"))
	}
}
