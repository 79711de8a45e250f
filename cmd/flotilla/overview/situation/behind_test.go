package situation_test

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

func TestBehindOf(t *testing.T) {
	const three = "main@sha1:3333333333333333333333333333333333333333"
	const one, two = "main@sha1:1111111111111111111111111111111111111111", "main@sha1:2222222222222222222222222222222222222222"
	type condition = metav1.Condition
	ready := condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ReconciliationSucceeded"}
	blocked := condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "BuildFailed", Message: "app/web.yaml: broken"}
	switches := condition{Type: "Switching", Status: metav1.ConditionTrue}
	for name, tc := range map[string]struct {
		applied, tried string
		record         string // in the history
		suspend        bool
		conditions     []condition
		want           situation.Behind
	}{
		"all is applied":               {applied: two, tried: two, conditions: []condition{ready}},
		"a revision is on its way":     {applied: one, tried: two, conditions: []condition{{Type: "Ready", Status: metav1.ConditionUnknown, Reason: "Progressing"}}},
		"it is applied, and unhealthy": {applied: one, tried: two, conditions: []condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "HealthCheckFailed"}}},
		"it is refused": {applied: one, tried: two, conditions: []condition{blocked}, want: situation.Behind{
			Reason:  "RevisionNotApplied",
			Message: "Kustomization team/app has not applied revision main@sha1:22222222, so that what is in Git may be newer than this: app/web.yaml: broken",
			Next:    "correct the files and commit; the last revision keeps running. flotilla trace kustomization/app -n team",
		}},
		"a half is written": {applied: one, tried: two, conditions: []condition{blocked, switches}, want: situation.Behind{
			Reason:  "HeldBySwitch",
			Message: "Kustomization team/app has written a part of revision main@sha1:22222222: what is here may be of it, and clusters keep what they had, whoever changes it, until all is written: app/web.yaml: broken",
			Next:    "correct the files and commit; the last revision keeps running. flotilla trace kustomization/app -n team",
		}},
		"a half is written of another one than was tried last": {applied: one, tried: one, conditions: []condition{blocked, {Type: "Switching", Status: metav1.ConditionTrue, Message: revisiongate.Announcement(two, "sha256:a", nil)}}, want: situation.Behind{
			Reason:  "HeldBySwitch",
			Message: "Kustomization team/app has written a part of revision main@sha1:22222222: what is here may be of it, and clusters keep what they had, whoever changes it, until all is written: app/web.yaml: broken",
			Next:    "correct the files and commit; the last revision keeps running. flotilla trace kustomization/app -n team",
		}},
		"only namespaces and kinds are written, which templates do not wait for": {applied: one, tried: two, conditions: []condition{
			{Type: "Ready", Status: metav1.ConditionUnknown, Reason: "Progressing"}, {Type: "Switching", Status: metav1.ConditionTrue, Reason: "Defining"},
		}},
		"it is suspended": {applied: one, tried: one, suspend: true, conditions: []condition{ready}, want: situation.Behind{
			Reason:  "KustomizationSuspended",
			Message: "Kustomization team/app is suspended at revision main@sha1:11111111: revision main@sha1:22222222 is not looked at",
			Next:    "let it go on: flotilla resume kustomization app -n team",
		}},
		"it is suspended at one that never became healthy": {applied: one, tried: two, record: two, suspend: true, conditions: []condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "HealthCheckFailed"}}},
		"the one before it never became healthy": {applied: one, tried: three, record: two, conditions: []condition{blocked}, want: situation.Behind{
			Reason:  "RevisionNotApplied",
			Message: "Kustomization team/app has not applied revision main@sha1:33333333, so that what is in Git may be newer than this: app/web.yaml: broken",
			Next:    "correct the files and commit; revision main@sha1:22222222, which has not become ready, stays until then. flotilla trace kustomization/app -n team",
		}},
		"it is suspended, and nothing came": {applied: two, tried: two, suspend: true, conditions: []condition{ready}},
	} {
		t.Run(name, func(t *testing.T) {
			ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}}
			ks.Spec.Suspend = tc.suspend
			ks.Status = kustomizev1.KustomizationStatus{LastAppliedRevision: tc.applied, LastAttemptedRevision: tc.tried, Conditions: tc.conditions}
			if tc.record != "" {
				ks.Status.History = meta.History{{Metadata: map[string]string{"gitops.flotilla.io/applied": "sha256:b sha256:a " + tc.record + " 7"}}}
			}
			if diff := cmp.Diff(tc.want, situation.BehindOf(ks, two)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheRevisionShownIsTheOneThatIsThere: a revision that never became healthy is on the control plane, and is the one shown.
func TestTheRevisionShownIsTheOneThatIsThere(t *testing.T) {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}}
	ks.Status = kustomizev1.KustomizationStatus{
		LastAppliedRevision: "main@sha1:1", LastAttemptedRevision: "main@sha1:3",
		History:    meta.History{{Metadata: map[string]string{"gitops.flotilla.io/applied": "sha256:b sha256:a main@sha1:2 7"}}},
		Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "BuildFailed", Message: "broken"}},
	}
	s := situation.NewSurvey(now, "")
	s.Kustomization(ks)
	if got := s.Fleet().Kustomizations[0].Revision; got != "main@sha1:2" {
		t.Errorf("revision %s is shown", got)
	}
}
