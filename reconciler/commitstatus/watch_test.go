package commitstatus

import (
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
)

func TestAnOwnWriteCountsUntilTheCacheHasShownItOrItsEnd(t *testing.T) {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop"}}
	r := New(fake.NewClientBuilder().WithScheme(scheme.New()).Build(), nil, nil, Options{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))})
	written := &gitopsv1alpha1.CommitStatus{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop-forge", ResourceVersion: "7"},
		Spec:       gitopsv1alpha1.CommitStatusSpec{KustomizationRef: &gitopsv1alpha1.LocalReference{Name: "shop"}},
	}
	count := func() int {
		existing, err := r.statuses.of(t.Context(), ks.Namespace, aboutKustomization(ks.Name))
		if err != nil {
			t.Fatal(err)
		}
		return len(existing)
	}
	r.statuses.wrote(t.Context(), written)
	if got := count(); got != 1 {
		t.Errorf("%d commit statuses right after one was written", got)
	}
	events := wakes{statuses: r.statuses}.statusEvents()
	if events.Create(event.CreateEvent{Object: written}) {
		t.Error("an own write is looked into")
	}
	if !events.Delete(event.DeleteEvent{Object: written}) {
		t.Error("a loss is not looked into")
	}
	if got := count(); got != 0 {
		t.Errorf("%d commit statuses after the only one was removed", got)
	}
}

// TestWhichClustersAreNews: one that comes or goes may be one that a commit names, and one that falls
// silent may run what a commit asks for; what else is new of clusters changes no commit.
func TestWhichClustersAreNews(t *testing.T) {
	cluster := func(version string, ready metav1.ConditionStatus) *clusterv1alpha1.Cluster {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
		c.Status.KubernetesVersion = version
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: ready}}
		return c
	}
	well, newer, silent := cluster("v1.35.0", metav1.ConditionTrue), cluster("v1.36.0", metav1.ConditionTrue), cluster("v1.35.0", metav1.ConditionFalse)
	for name, tc := range map[string]struct{ got, want bool }{
		"one joins":        {fleetChanges.Create(event.CreateEvent{Object: well}), true},
		"one leaves":       {fleetChanges.Delete(event.DeleteEvent{Object: well}), true},
		"one falls silent": {fleetChanges.Update(event.UpdateEvent{ObjectOld: well, ObjectNew: silent}), true},
		"one is upgraded":  {fleetChanges.Update(event.UpdateEvent{ObjectOld: well, ObjectNew: newer}), false},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: it is news: %t, want %t", name, tc.got, tc.want)
		}
	}
}
