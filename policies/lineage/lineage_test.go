package lineage_test

import (
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/policies/lineage"
)

// TestRelations is about what is said of each.
func TestRelations(t *testing.T) {
	for relation, want := range map[lineage.Relation][2]string{
		lineage.Ahead:   {"", ""},
		lineage.Behind:  {"HistoryRewritten", "the history was moved back, and does not contain main@sha1:1"},
		lineage.Aside:   {"HistoryRewritten", "the history was rewritten, and does not contain main@sha1:1"},
		lineage.Beside:  {"HistoryRewritten", "it is a higher version, of a history that does not contain main@sha1:1"},
		lineage.Unknown: {"HistoryUnknown", "it is not known whether its history contains main@sha1:1"},
	} {
		if got := [2]string{relation.Reason(), relation.Text("main@sha1:1")}; got != want {
			t.Errorf("%d: %q, want %q", relation, got, want)
		}
	}
}

// TestHeldBy is about which revision is held back.
func TestHeldBy(t *testing.T) {
	refused := lineage.Refused{Revision: "main@sha1:2", Why: "the history was rewritten"}
	for name, tc := range map[string]struct {
		reason, message string
		want            lineage.Refused
	}{
		"a history that was rewritten":   {lineage.ReasonRewritten, refused.Message(), refused},
		"one that is not known":          {lineage.ReasonUnknown, refused.Message(), refused},
		"another fault with the words":   {"GitOperationFailed", refused.Message(), lineage.Refused{}},
		"the reason without a revision":  {lineage.ReasonRewritten, "something else", lineage.Refused{}},
		"words in place of the revision": {lineage.ReasonRewritten, "a branch is held back: x", lineage.Refused{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &sourcev1.GitRepository{}
			r.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: tc.reason, Message: tc.message}}
			if got := lineage.RefusedBy(r); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
	if got := lineage.RefusedBy(&sourcev1.GitRepository{}); got != (lineage.Refused{}) {
		t.Errorf("of a new repository: %+v", got)
	}
}
