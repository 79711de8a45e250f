package situation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
)

func TestWhatAForgeIsNotReported(t *testing.T) {
	s := situation.NewSurvey(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "")
	s.Cluster(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}, time.Time{})
	for name, synced := range map[string]metav1.Condition{
		"a": {Status: metav1.ConditionFalse, Reason: "Refused", Message: "401 Unauthorized"}, "b": {Status: metav1.ConditionFalse, Reason: "Refused", Message: "401 Unauthorized"},
		"c": {Status: metav1.ConditionTrue, Reason: "Posted"}, "d": {Status: metav1.ConditionUnknown, Reason: "WaitingForForge"},
	} {
		synced.Type = gitopsv1alpha1.CommitStatusSynced
		cs := &gitopsv1alpha1.CommitStatus{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		cs.Spec.ProviderRef.Name, cs.Status.Conditions = "forge", []metav1.Condition{synced}
		s.CommitStatus(cs)
	}
	want := []situation.Note{{
		Kind: "Provider", Namespace: "team", Name: "forge",
		Message: "its forge is not told what came of commits (2 statuses): Refused: 401 Unauthorized",
		Next:    "mend what it says; it is tried again by itself: flotilla get commitstatuses -n team",
	}}
	if diff := cmp.Diff(want, s.Fleet().Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}
