package situation_test

import (
	"slices"
	"testing"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
)

// TestReceivers: one that hears nobody is a problem, as commits arrive late by it; one that is ready is on no screen.
func TestReceivers(t *testing.T) {
	failed := func(message, next string) []situation.Problem {
		return []situation.Problem{{State: situation.Failed, Kind: "Receiver", Namespace: "shop", Name: "hook", Message: message, Next: next}}
	}
	for name, tc := range map[string]struct {
		status          metav1.ConditionStatus
		reason, message string
		suspended       bool
		want            []situation.Problem
	}{
		"it is ready": {status: metav1.ConditionTrue, reason: "Succeeded"},
		"nobody has looked": {want: []situation.Problem{{State: situation.Progressing, Kind: "Receiver", Namespace: "shop", Name: "hook", Message: "nobody has looked at it yet",
			Next: "wait a moment; if it stays so, see whether the control plane runs the controller receiver"}}},
		"its Secret is missing": {metav1.ConditionFalse, "TokenNotFound", "the Secret shop/token of spec.secretRef is not there: create it, with the key token", false,
			failed("the Secret shop/token of spec.secretRef is not there: create it, with the key token", "create the Secret token -n shop with the key token, which the sender gets, too")},
		"its Secret has no token": {metav1.ConditionFalse, "TokenNotFound", "the Secret shop/token of spec.secretRef has no email: add that key", false,
			failed("the Secret shop/token of spec.secretRef has no email: add that key", "add the key email to the Secret token -n shop")},
		"nobody listens": {metav1.ConditionFalse, "NotListening", "the control plane listens for no webhooks", false,
			failed("the control plane listens for no webhooks", "have an administrator start flotillad serve with --receiver-address, such as :9292")},
		"a filter is none": {metav1.ConditionFalse, "InvalidCELExpression", "spec.resourceFilter: invalid expression", false,
			failed("spec.resourceFilter: invalid expression", "correct its spec: flotilla edit receiver hook -n shop")},
		"it is suspended": {status: metav1.ConditionFalse, reason: "TokenNotFound", suspended: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "")
			r := &notificationv1.Receiver{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hook"}}
			r.Spec.SecretRef, r.Spec.Suspend = &meta.LocalObjectReference{Name: "token"}, tc.suspended
			if tc.status != "" {
				r.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: tc.status, Reason: tc.reason, Message: tc.message}}
			}
			situation.Receiver(s, r)
			fleet := s.Fleet()
			if diff := cmp.Diff(tc.want, append([]situation.Problem(nil), fleet.Problems...)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if reported := slices.ContainsFunc(fleet.Notes, func(n situation.Note) bool { return n.Next == "flotilla resume receiver hook -n shop" }); reported != tc.suspended {
				t.Errorf("notes: %v", fleet.Notes)
			}
		})
	}
}
