package request

import (
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A wait ends with what a person has to mend, and not while a dependency is waited for, which goes on by itself.
func TestWhatEndsAWait(t *testing.T) {
	type outcome struct {
		Ended     bool
		Err, Says string
	}
	for name, tc := range map[string]struct {
		status  metav1.ConditionStatus
		reason  string
		message string
		want    outcome
	}{
		"it is ready":               {metav1.ConditionTrue, "ReconciliationSucceeded", "Applied", outcome{Ended: true, Says: "✔ applied revision main@sha1:1\n"}},
		"it is under way":           {metav1.ConditionUnknown, "Progressing", "Applying", outcome{Says: "◎ Applying\n"}},
		"it is refused":             {metav1.ConditionFalse, "BuildFailed", "a typo", outcome{Ended: true, Err: "Kustomization team/web is not ready: BuildFailed: a typo"}},
		"a dependency is not ready": {metav1.ConditionFalse, "DependencyNotReady", "dependency team/db is not ready", outcome{Says: "◎ dependency team/db is not ready\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", Generation: 2}}
			ks.Status.ObservedGeneration, ks.Status.LastAppliedRevision = 2, "main@sha1:1"
			ks.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: tc.status, Reason: tc.reason, Message: tc.message, ObservedGeneration: 2}}
			var out strings.Builder
			w := &waiting{requester: &requester{out: &out}, what: kustomizations, obj: ks, handled: seen}
			ended, err := w.judge(ks)
			got := outcome{Ended: ended, Says: out.String()}
			if err != nil {
				got.Err = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
