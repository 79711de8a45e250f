package unsent_test

import (
	"testing"
	"time"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/unsent"
	"github.com/flotilla-io/flotilla/policies/alerting"
)

func TestWhatIsNotSent(t *testing.T) {
	var a unsent.Alerts
	for name, kind := range map[string]string{"chat": "slack", "forge": "github"} {
		a.Provider(&notificationv1beta3.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: notificationv1beta3.ProviderSpec{Type: kind, Address: "https://" + name + ".example.com/acme/fleet"}})
	}
	a.Provider(&notificationv1beta3.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pager"}, Spec: notificationv1beta3.ProviderSpec{Type: "opsgenie"}})
	a.Provider(&notificationv1beta3.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "off"}, Spec: notificationv1beta3.ProviderSpec{Type: "opsgenie", Suspend: true}})
	for name, provider := range map[string]string{"well": "chat", "statuses": "forge", "of-nobody": "pager"} {
		a.Alert(&notificationv1beta3.Alert{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: notificationv1beta3.AlertSpec{
			ProviderRef: meta.LocalObjectReference{Name: provider}, EventSources: []notificationv1.CrossNamespaceObjectReference{{Kind: "Kustomization", Name: "*"}},
		}})
	}
	a.Alert(&notificationv1beta3.Alert{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "helm"}, Spec: notificationv1beta3.AlertSpec{
		ProviderRef: meta.LocalObjectReference{Name: "chat"}, EventSources: []notificationv1.CrossNamespaceObjectReference{{Kind: "HelmRelease", Name: "*"}},
	}})
	a.Alert(&notificationv1beta3.Alert{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lost"}, Spec: notificationv1beta3.AlertSpec{
		ProviderRef: meta.LocalObjectReference{Name: "chta"}, ExclusionList: []string{"("},
	}})
	a.Provider(&notificationv1beta3.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nowhere"}, Spec: notificationv1beta3.ProviderSpec{Type: "generic"}})
	want := []unsent.Cause{
		{Kind: "Provider", Namespace: "shop", Name: "pager", Fault: alerting.Fault{Path: "spec.type", Message: "opsgenie is not served yet, and nothing is sent: use one of alertmanager, discord, generic, generic-hmac, githubdispatch, googlechat, grafana, matrix, msteams, pagerduty, slack"}},
		{Kind: "Provider", Namespace: "shop", Name: "nowhere", Fault: alerting.Fault{Path: "spec.address", Message: "it has no address: set spec.address, or the key address of its Secret"}},
		{Kind: "Alert", Namespace: "shop", Name: "helm", Fault: alerting.Fault{Path: "spec.eventSources[0].kind", Message: "HelmRelease is not served yet, and has no events: use GitRepository, OCIRepository, Bucket, ExternalArtifact, Kustomization"}},
		{Kind: "Alert", Namespace: "shop", Name: "lost", Fault: alerting.Fault{Path: "spec.providerRef", Message: "the Provider chta does not exist, and nothing is sent (did you mean chat?): create it, or correct the name"}},
		{Kind: "Alert", Namespace: "shop", Name: "lost", Fault: alerting.Fault{Path: "spec.exclusionList[0]", Message: `"(" counts for nothing, as it is no regular expression: missing closing )`}},
	}
	if diff := cmp.Diff(want, a.Causes()); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
}

// TestProvidersThatNobodyMayRead: of what was not read nothing is said to be missing.
func TestProvidersThatNobodyMayRead(t *testing.T) {
	a := unsent.Alerts{Blind: true}
	a.Alert(&notificationv1beta3.Alert{Spec: notificationv1beta3.AlertSpec{ProviderRef: meta.LocalObjectReference{Name: "chat"}}})
	if causes := a.Causes(); len(causes) != 0 {
		t.Errorf("causes: %v", causes)
	}
}

// TestMessagesThatDoNotArrive: the last Event of an Alert counts, in whatever order they are read.
func TestMessagesThatDoNotArrive(t *testing.T) {
	event := func(reason string, minute int) *corev1.Event {
		return &corev1.Event{
			InvolvedObject: corev1.ObjectReference{Kind: "Alert", Namespace: "shop", Name: "a"}, Reason: reason, Message: "HTTP 403;\nlost",
			LastTimestamp: metav1.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC),
		}
	}
	lost := []string{"MessageNotSent: HTTP 403; lost", "put right what it says; the next message that arrives ends this: flotilla events --for alert/a -n shop"}
	for name, tc := range map[string]struct {
		events []*corev1.Event
		want   []string
	}{
		"one is lost":               {[]*corev1.Event{event("MessageNotSent", 1), event("AlertNotReady", 2)}, lost},
		"one arrived since":         {[]*corev1.Event{event("MessageSent", 2), event("MessageNotSent", 1)}, nil},
		"and one is lost once more": {[]*corev1.Event{event("MessageSent", 2), event("MessageNotSent", 3)}, lost},
	} {
		t.Run(name, func(t *testing.T) {
			a := unsent.Alerts{Blind: true}
			a.Alert(&notificationv1beta3.Alert{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}})
			for _, e := range tc.events {
				a.Event(e)
			}
			var got []string
			for _, c := range a.Causes() {
				got = append(got, c.Says(), c.Next())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("says (-want +got):\n%s", diff)
			}
		})
	}
}
