package unsent_test

import (
	"testing"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
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
		{Kind: "Alert", Namespace: "shop", Name: "helm", Fault: alerting.Fault{Path: "spec.eventSources[0].kind", Message: "HelmRelease is not served yet, and has no events: use GitRepository, OCIRepository, Kustomization"}},
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
