package notices_test

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/apply/notices"
)

// kustomization returns one that has applied a revision, with the condition Ready as a run left it.
func kustomization(applied string, status metav1.ConditionStatus, reason, message string) *kustomizev1.Kustomization {
	ks := &kustomizev1.Kustomization{}
	ks.Status.LastAppliedRevision = applied
	ks.Status.History = meta.History{{}}
	lastgood.Write(&ks.Status, lastgood.Record{Revision: applied, Artifact: "sha256:a", Objects: "sha256:b"})
	ks.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: status, Reason: reason, Message: message}}
	return ks
}

// TestWhatIsToldOfARun: what was done for the last good revision is told beside the refusal of a newer one, and what
// others delete again and again is asked for, and thereby forgotten, only where it is told.
func TestWhatIsToldOfARun(t *testing.T) {
	ready := kustomization("a", metav1.ConditionTrue, meta.ReconciliationSucceededReason, "Applied revision: a")
	refused := kustomization("a", metav1.ConditionFalse, "PruneBlocked", "no")
	type told struct {
		Notices  []notices.Notice
		Repeated int
	}
	for name, tc := range map[string]struct {
		run  notices.Run
		want told
	}{
		"nothing happened": {run: notices.Run{Before: ready, After: ready, Revision: "a"}},
		"a newer revision is refused, and the last good one was kept": {
			run: notices.Run{
				Before: ready, After: refused, Revision: "b", Outcome: &loop.Error{Reason: "PruneBlocked"},
				DriftCorrected: "1 created: ConfigMap/team/a", OwedDeleted: "ConfigMap/team/b",
			},
			want: told{Notices: []notices.Notice{
				{Type: "Warning", Reason: "PruneBlocked", Message: "no"},
				{Type: "Normal", Reason: "DriftCorrected", Message: "Brought back to revision a, which stays while b is not applied: 1 created: ConfigMap/team/a"},
				{Type: "Normal", Reason: "ReconciliationSucceeded", Message: "Removed what had left revision a, which stays while b is not applied: ConfigMap/team/b"},
			}},
		},
		"it is refused as before": {run: notices.Run{Before: refused, After: refused, Revision: "b", Outcome: &loop.Error{Reason: "PruneBlocked"}}},
		"drift was corrected": {
			run: notices.Run{Before: ready, After: ready, Revision: "a", Changes: "1 created: ConfigMap/team/a"},
			want: told{Repeated: 1, Notices: []notices.Notice{
				{Type: "Normal", Reason: "DriftCorrected", Message: "Brought back to revision a: 1 created: ConfigMap/team/a; again and again"},
			}},
		},
		"something is not applied as the files have it": {
			run:  notices.Run{Before: ready, After: ready, Revision: "a", SameContent: true, Omitted: "ConfigMap/team/a"},
			want: told{Notices: []notices.Notice{{Type: "Warning", Reason: "FieldsOmitted", Message: "Not applied of revision a: ConfigMap/team/a"}}},
		},
		"others may want what left it": {
			run: notices.Run{
				Before: ready, After: kustomization("a", metav1.ConditionUnknown, "HandingOver", "who?"), Revision: "b",
				Outcome: &loop.Error{Reason: "HandingOver"}, Undecided: true,
			},
			want: told{Notices: []notices.Notice{{Type: "Warning", Reason: "HandingOver", Message: "who?"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got told
			tc.run.Repeated = func() string { got.Repeated++; return "; again and again" }
			got.Notices = notices.Of(tc.run)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}
