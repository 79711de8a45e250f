package dependencies_test

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/flotilla-io/flotilla/reconciler/apply/dependencies"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// TestChanged: which changes of a Kustomization start runs of those that depend on it.
func TestChanged(t *testing.T) {
	ks := func(reason string, status metav1.ConditionStatus, applied, attempted string) *kustomizev1.Kustomization {
		out := &kustomizev1.Kustomization{Status: kustomizev1.KustomizationStatus{LastAppliedRevision: applied, LastAttemptedRevision: attempted}}
		apimeta.SetStatusCondition(&out.Status.Conditions, metav1.Condition{Type: meta.ReadyCondition, Status: status, Reason: reason})
		return out
	}
	ready := ks(meta.ReconciliationSucceededReason, metav1.ConditionTrue, "1", "1")
	for name, tc := range map[string]struct {
		before, after *kustomizev1.Kustomization
		want          bool
	}{
		"another revision is applied":              {ready, ks(meta.ReconciliationSucceededReason, metav1.ConditionTrue, "2", "2"), true},
		"another one is tried":                     {ready, ks(meta.ReconciliationSucceededReason, metav1.ConditionTrue, "1", "2"), false},
		"it fails":                                 {ready, ks(meta.BuildFailedReason, metav1.ConditionFalse, "1", "2"), true},
		"it fails on":                              {ks(meta.BuildFailedReason, metav1.ConditionFalse, "1", "2"), ks(meta.BuildFailedReason, metav1.ConditionFalse, "1", "3"), false},
		"something is to change hands":             {ready, ks(siblings.ReasonHandingOver, metav1.ConditionUnknown, "1", "2"), true},
		"another revision stands, and it still is": {ks(siblings.ReasonHandingOver, metav1.ConditionUnknown, "1", "2"), ks(siblings.ReasonHandingOver, metav1.ConditionUnknown, "1", "3"), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := dependencies.Changed().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("wakes: %t", got)
			}
		})
	}
}

// TestMovedOn says which changes of a Kustomization wake those that exchange objects with it.
func TestMovedOn(t *testing.T) {
	ks := func(reason string) *kustomizev1.Kustomization {
		out := &kustomizev1.Kustomization{}
		if reason != "" {
			apimeta.SetStatusCondition(&out.Status.Conditions, metav1.Condition{Type: revisiongate.Condition, Status: metav1.ConditionTrue, Reason: reason})
		}
		return out
	}
	for name, tc := range map[string]struct {
		before, after *kustomizev1.Kustomization
		want          bool
	}{
		"a switch begins":      {ks(""), ks(meta.ProgressingReason), true},
		"all of it is written": {ks(meta.ProgressingReason), ks(revisiongate.ReasonWritten), true},
		"it is over":           {ks(revisiongate.ReasonWritten), ks(""), true},
		"it is as it was":      {ks(revisiongate.ReasonWritten), ks(revisiongate.ReasonWritten), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := dependencies.MovedOn().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("wakes: %t", got)
			}
		})
	}
}
