package setback_test

import (
	"math"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/setback"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// TestWhatAnAgentMakesUpOfThePresentRunIsNotForgivenForGood: an agent says that it has seen
// more of the present run than that will ever come to, somebody says to go on, and the store
// is set back afterwards. What other members have seen since tells so.
func TestWhatAnAgentMakesUpOfThePresentRunIsNotForgivenForGood(t *testing.T) {
	s := newStore("10000")
	k, mark := start(t, s, "12000", nil)
	s.revision = "12100"
	forged := hubclaim.Report{Mark: hubclaim.Mark{Run: mark.Run, ID: mark.ID, Revision: math.MaxInt64 - 1}, Behind: true}
	if err := k.Heard(t.Context(), "west", forged, true); err != nil || k.HoldOf("west") == nil || k.HoldOf("east") != nil {
		t.Fatalf("west waits, and east does not: %v, %v", k.Hold(), err)
	}
	if err := setback.New(s, s, nil).Resume(t.Context()); err != nil { // as the command does
		t.Fatal(err)
	}
	k.Learned(s.system(t))
	if err := k.Heard(t.Context(), "west", forged, true); err != nil || k.Hold() != nil {
		t.Fatalf("what was forgiven holds west again: %v, %v", k.Hold(), err)
	}
	k.Saw("east", "13000")
	renewed, err := k.Next(t.Context(), "east", mark)
	if err != nil || renewed == nil || renewed.ID == mark.ID || renewed.Run != mark.Run+1 || renewed.Revision != 13000 {
		t.Fatalf("the mark of east is %+v, %v; it was %+v", renewed, err, mark)
	}
	if err := k.Weigh(t.Context(), "north", &hubclaim.Mark{Run: mark.Run, ID: mark.ID, Revision: 12050}); err != nil || k.Hold() != nil {
		t.Errorf("what the hub itself had marked before holds it: %v, %v", k.Hold(), err)
	}

	back := newStore("13100")
	system := back.system(t)
	metav1.SetMetaDataAnnotation(&system.ObjectMeta, clusterv1alpha1.HistoryAnnotation, s.system(t).Annotations[clusterv1alpha1.HistoryAnnotation])
	if err := back.Update(t.Context(), system); err != nil {
		t.Fatal(err)
	}
	k.Saw("east", "14000")
	lost, err := k.Next(t.Context(), "east", renewed)
	if err != nil || lost == nil || lost.Revision != 14000 {
		t.Fatalf("the mark of east is %+v, %v", lost, err)
	}
	restored := setback.New(back, back, nil)
	if err := restored.Weigh(t.Context(), "east", lost); err != nil || restored.HoldOf("east") == nil {
		t.Errorf("a store that was set back is not held: %v", err)
	}
}
